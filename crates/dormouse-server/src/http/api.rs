//! The OpenAPI document, made from the routes.

use std::collections::BTreeMap;

use utoipa::openapi::{
    ContentBuilder, InfoBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder, ResponsesBuilder,
};
use utoipa::{IntoResponses, ToSchema};

use super::problem::ProblemOut;
use super::route::routes_with_api;

/// Declares sets of problems a call may answer with.
macro_rules! problems {
    ($($(#[$text:meta])* $name:ident { $($status:literal: $what:literal),+ $(,)? })+) => {
        $(
            $(#[$text])*
            pub(crate) struct $name;

            impl IntoResponses for $name {
                fn responses() -> BTreeMap<String, RefOr<Response>> {
                    problems_of(&[$(($status, $what)),+])
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
    /// Of calls about something that must be there.
    Missing {
        "404": "No such job, topic or lock",
    }
    /// Of calls that a state may forbid.
    InTheWay {
        "409": "The state of the job, a taken key or a held lock is in the way; or the lease is \
            lost",
    }
    /// Of the question whether the server is ready.
    NotReady {
        "503": "Stopping, or the store does not answer",
    }
}

fn problems_of(statuses: &[(&str, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let statuses = statuses.iter().map(|(status, text)| {
        let schema = Ref::from_schema_name(ProblemOut::name());
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let response =
            ResponseBuilder::new().description(*text).content("application/problem+json", content);
        (*status, response)
    });
    ResponsesBuilder::new().responses_from_iter(statuses).build().into()
}

/// The document.
pub fn openapi() -> OpenApi {
    let (_, mut api) = routes_with_api().split_for_parts();
    api.info = InfoBuilder::new()
        .title("Dormouse")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("A durable delay queue: put a job now, get it at its time."))
        .build();
    let mut schemas = vec![(
        ProblemOut::name().into_owned(),
        <ProblemOut<'_> as utoipa::PartialSchema>::schema(),
    )];
    <ProblemOut<'_> as ToSchema>::schemas(&mut schemas);
    let components = api.components.get_or_insert_default();
    components.schemas.extend(schemas);
    api
}
