//! The OpenAPI document, made from the routes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ContentBuilder, Header, InfoBuilder, LicenseBuilder, OpenApi, PathItem, Ref, RefOr, Required,
    Response, ResponseBuilder, ResponsesBuilder, SecurityRequirement,
};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

use super::form::PutResults;
use super::problem::ProblemOut;
use super::route::{EndedResults, routes_with_api};

const PROBLEM: &str = "application/problem+json";
const BEARER: &str = "bearer";

const DESCRIPTION: &str = "A durable delay queue: put a job now, get it at its time.

Spans are \"30m\", \"1h 30m\", \"PT30M\" or ms; instants are RFC 3339 or ms since 1970. Unknown \
    fields and query parameters are refused. Topics, keys and names in paths are percent-encoded.";

const TAGS: &[(&str, &str)] = &[
    ("jobs", "Put jobs, and do something with one of them"),
    ("leases", "Take jobs, and say what became of them"),
    ("topics", "Lines of jobs: their counts, settings and contents"),
    ("locks", "Named locks that expire, each grant with a growing number"),
    ("server", "The server itself"),
];

/// Declares sets of problems a call may answer with.
macro_rules! problems {
    ($($(#[$text:meta])* $name:ident $(or $results:ty)? {
        $($status:literal: $what:literal),+ $(,)?
    })+) => {
        $(
            $(#[$text])*
            pub(crate) struct $name;

            impl IntoResponses for $name {
                fn responses() -> BTreeMap<String, RefOr<Response>> {
                    #[allow(unused_mut, unused_assignments, reason = "not all have results")]
                    let mut results: Option<Cow<'static, str>> = None;
                    $(results = Some(<$results as ToSchema>::name());)?
                    problems_of(&[$(($status, $what)),+], results.as_deref())
                }
            }
        )+
    };
}

problems! {
    /// Of every call, whoever may make it.
    Guarded {
        "403": "A foreign origin",
        "421": "Not a host of this server",
    }
    /// Of every call that needs a token.
    Problems {
        "400": "Malformed",
        "401": "No token, or one that is not known",
        "403": "The token does not allow this; or a foreign origin",
        "421": "Not a host of this server",
        "422": "Beyond a limit",
        "503": "Busy, or stopping; try again",
        "504": "It may or may not have happened",
    }
    /// Of calls that take a body.
    Sent {
        "408": "The request came too slowly",
        "413": "Beyond the size limit",
    }
    /// Of calls whose answer may be large.
    Large {
        "413": "Beyond the size limit; ask for less at once",
    }
    /// Of calls about something that must be there.
    Missing {
        "404": "No such job, topic or lock",
    }
    /// Of calls that a state may forbid.
    InTheWay {
        "409": "The state of the job, or a held lock, is in the way",
    }
    /// Of the question whether the server is ready.
    NotReady {
        "503": "Stopping, or the store does not answer",
    }
    /// Of put: a list of one has that item's status, and still answers with results.
    PutProblems or PutResults {
        "409": "The key is taken",
        "413": "A body, or the request, beyond its limit",
        "422": "Beyond a limit",
        "503": "Busy, or stopping; try again",
        "504": "It may or may not have happened",
        "507": "No room for more jobs",
    }
    /// Of calls with tokens, likewise.
    EndProblems or EndedResults {
        "409": "The lease is lost",
        "422": "Beyond a limit",
        "503": "Busy, or stopping; try again",
        "504": "It may or may not have happened",
    }
    /// Of extend, likewise.
    ExtendProblems or EndedResults {
        "404": "The job is gone",
        "409": "The lease is lost",
        "422": "Beyond a limit",
        "503": "Busy, or stopping; try again",
        "504": "It may or may not have happened",
    }
}

fn problems_of(
    statuses: &[(&str, &str)],
    results: Option<&str>,
) -> BTreeMap<String, RefOr<Response>> {
    let content =
        |schema: &str| ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
    let statuses = statuses.iter().map(|(status, text)| {
        let mut response =
            ResponseBuilder::new().description(*text).content(PROBLEM, content(&name_of_problem()));
        if let Some(results) = results {
            response = response.content("application/json", content(results));
        }
        match *status {
            "401" => response = response.header("WWW-Authenticate", header(Type::String, "How")),
            "503" | "507" => {
                response = response.header("Retry-After", header(Type::Integer, "In so many s"));
            }
            _ => {}
        }
        (*status, response)
    });
    ResponsesBuilder::new().responses_from_iter(statuses).build().into()
}

fn name_of_problem() -> String {
    ProblemOut::name().into_owned()
}

fn header(kind: Type, text: &str) -> Header {
    let schema = ObjectBuilder::new().schema_type(kind);
    HeaderBuilder::new().schema(Some(schema)).description(Some(text)).build()
}

/// The document.
pub fn openapi() -> OpenApi {
    let (_, mut api) = routes_with_api().split_for_parts();
    let license = env!("CARGO_PKG_LICENSE");
    api.info = InfoBuilder::new()
        .title("Dormouse")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .license(Some(LicenseBuilder::new().name(license).identifier(Some(license)).build()))
        .build();
    let tags = TAGS
        .iter()
        .map(|(name, text)| TagBuilder::new().name(*name).description(Some(*text)).build());
    api.tags = Some(tags.collect());
    // With tokens configured one is needed, without none is.
    api.security =
        Some(vec![SecurityRequirement::new(BEARER, [""; 0]), SecurityRequirement::default()]);
    let mut schemas = vec![(name_of_problem(), <ProblemOut<'_> as PartialSchema>::schema())];
    <ProblemOut<'_> as ToSchema>::schemas(&mut schemas);
    let components = api.components.get_or_insert_default();
    components.schemas.extend(schemas);
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
    components.schemas.values_mut().for_each(widen);
    for operation in api.paths.paths.values_mut().flat_map(operations) {
        for parameter in operation.parameters.iter_mut().flatten() {
            if let RefOr::T(parameter) = parameter {
                parameter.schema.iter_mut().for_each(widen);
            }
        }
        mend_request(operation);
    }
    api
}

/// An unsigned number of 32 bits is described as a signed one, which many do not fit in.
fn widen(schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            if object.format == Some(SchemaFormat::KnownFormat(KnownFormat::Int32)) {
                object.format = Some(SchemaFormat::KnownFormat(KnownFormat::Int64));
            }
            object.properties.values_mut().for_each(widen);
        }
        Schema::OneOf(either) => either.items.iter_mut().for_each(widen),
        Schema::AllOf(all) => all.items.iter_mut().for_each(widen),
        _ => {}
    }
}

fn operations(path: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, patch, .. } = path;
    [get, put, post, delete, patch].into_iter().flatten()
}

/// A body that may be absent is described as one that may be `null`, which it may not.
fn mend_request(operation: &mut Operation) {
    let Some(RefOr::T(body)) = &mut operation.request_body else { return };
    let RequestBody { content, required, .. } = body;
    for content in content.values_mut() {
        let RefOr::T(content) = content else { continue };
        let Some(RefOr::T(Schema::OneOf(either))) = &content.schema else { continue };
        let is_null = |item: &RefOr<Schema>| match item {
            RefOr::T(Schema::Object(object)) => object.schema_type == SchemaType::Type(Type::Null),
            _ => false,
        };
        if either.items.iter().any(is_null) {
            let kept = either.items.iter().find(|item| !is_null(item)).cloned();
            content.schema = kept;
            *required = Some(Required::False);
        }
    }
}
