//! The OpenAPI document, made from the routes.

use std::collections::BTreeMap;

use utoipa::openapi::{
    ContentBuilder, InfoBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder, ResponsesBuilder,
};
use utoipa::{IntoResponses, ToSchema};

use super::problem::Problem;
use super::route::routes_with_api;

/// What every call may answer instead: a problem.
pub(crate) struct Problems;

const STATUSES: &[(&str, &str)] = &[
    ("400", "Malformed"),
    ("401", "No token, or one that is not known"),
    ("403", "The token does not allow this, or a foreign origin"),
    ("404", "No such job, topic, lock or path"),
    ("408", "The request came too slowly"),
    ("409", "The state of the job, a taken key or a held lock is in the way; or the lease is lost"),
    ("413", "Beyond the size limit"),
    ("421", "Not a host of this server"),
    ("422", "Beyond a limit"),
    ("503", "Busy, or stopping; try again"),
    ("504", "It may or may not have happened"),
    ("507", "No room for more jobs"),
];

impl IntoResponses for Problems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let problem = |text: &str| {
            let schema = Ref::from_schema_name(Problem::name());
            let content = ContentBuilder::new().schema(Some(schema)).build();
            ResponseBuilder::new().description(text).content("application/problem+json", content)
        };
        let statuses = STATUSES.iter().map(|(status, text)| (*status, problem(text)));
        ResponsesBuilder::new().responses_from_iter(statuses).build().into()
    }
}

/// The document.
pub fn openapi() -> OpenApi {
    let (_, mut api) = routes_with_api().split_for_parts();
    api.info = InfoBuilder::new()
        .title("Dormouse")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("A durable delay queue: put a job now, get it at its time."))
        .build();
    let mut schemas =
        vec![(Problem::name().into_owned(), <Problem as utoipa::PartialSchema>::schema())];
    <Problem as ToSchema>::schemas(&mut schemas);
    let components = api.components.get_or_insert_default();
    components.schemas.extend(schemas);
    api
}
