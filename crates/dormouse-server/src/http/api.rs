//! The OpenAPI document, generated from the routes.

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
use super::route::{ChangedResults, EndedResults, FoundResults, routes_with_api};

const PROBLEM: &str = "application/problem+json";
const BEARER: &str = "bearer";

const DESCRIPTION: &str = "A durable delay queue: put a job now, get it at its time.

Spans are \"30m\", \"1h 30m\", \"PT30M\" or ms; instants are RFC 3339 or ms since 1970. Unknown \
    fields and query parameters are refused. Topics, keys and names in paths are percent-encoded.";

const TAGS: &[(&str, &str)] = &[
    ("jobs", "Put jobs; read, change or remove one of them"),
    ("leases", "Take jobs, and report the result of the work"),
    ("topics", "The counts, settings and jobs of topics"),
    ("locks", "Named locks that expire; every grant has a greater fence"),
    ("schedules", "Rules that put a job at each of their ticks"),
    ("push", "Where the server delivers the jobs of topics"),
    ("server", "The server itself"),
];

/// Declares sets of problems that a call may respond with.
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
    /// Problems of every call.
    GuardProblems {
        "403": "A foreign origin",
        "421": "Not a host of this server",
    }
    /// Problems of every call that needs a token.
    Problems {
        "400": "Malformed",
        "401": "No token, or an unknown one",
        "403": "The token does not allow this; or a foreign origin",
        "421": "Not a host of this server",
        "422": "Beyond a limit",
        "503": "Busy, or stopping; try again",
        "504": "It may or may not have happened",
    }
    /// Problems of calls that take a body.
    BodyProblems {
        "408": "The request arrived too slowly",
        "413": "Beyond the size limit",
    }
    /// Problems of calls whose response may be large.
    SizeProblems {
        "413": "Beyond the size limit; request less at once",
    }
    /// Problems of calls about a job, topic or lock that must exist.
    AbsenceProblems {
        "404": "No such job, topic, schedule or lock",
    }
    /// Problems of calls that a state may forbid.
    StateProblems {
        "409": "The state of the job, or a held lock, forbids this",
    }
    /// Problems of `/readyz`.
    ReadyProblems {
        "503": "Stopping, or the store does not reply",
    }
    /// Problems of put. A list of one item has that item's status, and a body with results.
    PutProblems or PutResults {
        "409": "The key is taken",
        "413": "A body, or the request, beyond its limit",
        "422": "Beyond a limit",
        "503": "Busy, or stopping; try again",
        "504": "It may or may not have happened",
        "507": "The topic or the disk is full",
    }
    /// Problems of calls that end leases, likewise.
    EndProblems or EndedResults {
        "409": "The lease is lost",
        "422": "Beyond a limit",
        "503": "Busy, or stopping; try again",
        "504": "It may or may not have happened",
    }
    /// Problems of calls that change jobs by their ids, likewise.
    IdsProblems or ChangedResults {
        "404": "No such job",
        "409": "The state of the job forbids this",
        "422": "Beyond a limit",
        "503": "Busy, or stopping; try again",
        "504": "It may or may not have happened",
    }
    /// Problems of the call that reads jobs by their ids, likewise.
    FoundProblems or FoundResults<'static> {
        "404": "No such job",
        "413": "Beyond the size limit; request less at once",
        "422": "Beyond a limit",
        "503": "Busy, or stopping; try again",
        "504": "The store did not reply in time",
    }
    /// Problems of ack, likewise; with `put` it can meet those of a put.
    AckProblems or EndedResults {
        "409": "The lease is lost; or the key of a put is taken",
        "413": "A body, or the request, beyond its limit",
        "422": "Beyond a limit",
        "503": "Busy, or stopping; try again",
        "504": "It may or may not have happened",
        "507": "The topic of a put or the disk is full",
    }
    /// Problems of extend, likewise.
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
            "401" => {
                response =
                    response.header("WWW-Authenticate", header(Type::String, "The kind of token"));
            }
            "503" | "507" => {
                response = response
                    .header("Retry-After", header(Type::Integer, "Seconds until the next try"));
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

/// The OpenAPI document of this API.
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
    // A token is needed only where tokens are configured.
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

/// utoipa describes `u32` as `int32`, whose range is too small: use `int64`.
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

/// utoipa describes an optional body as one that may be `null`, which is refused: make it optional.
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
