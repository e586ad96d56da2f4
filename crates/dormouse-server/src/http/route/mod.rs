//! One file per verb: how its request is read and its answer written. The rules are the backend's.

mod ack;
mod ending;
mod extend;
mod kill;
mod nack;
mod put;
mod release;
mod reserve;

use axum::Router;
use hyper::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::problem::Problem;

/// All paths, with their description.
pub(super) fn routes_with_api() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(put::put))
        .routes(routes!(reserve::reserve_topic))
        .routes(routes!(reserve::reserve))
        .routes(routes!(ack::ack))
        .routes(routes!(nack::nack))
        .routes(routes!(release::release))
        .routes(routes!(extend::extend))
        .routes(routes!(kill::kill))
}

/// All paths.
pub(crate) fn router(app: App) -> Router {
    let (router, _) = routes_with_api().split_for_parts();
    router.fallback(no_path).method_not_allowed_fallback(no_method).with_state(app)
}

async fn no_path() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "there is nothing at this path; /openapi.json lists all",
    )
}

async fn no_method() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "not_allowed",
        "this path does not take this method; the Allow header lists those it takes",
    )
}
