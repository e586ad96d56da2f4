//! metrics: the page of metrics.

use axum::extract::State;
use axum::response::IntoResponse;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};

use crate::access::Verb;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::response::HttpResult;
use crate::metrics::Levels;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of the server as OpenMetrics text, at most a second old.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "server",
    responses(
        (status = 200, description = "OpenMetrics text", body = String,
            content_type = "application/openmetrics-text"),
        Problems
    )
)]
pub(super) async fn metrics(State(app): State<App>, caller: Caller, params: Params) -> HttpResult {
    params.finish()?;
    caller.check_verb(Verb::Metrics)?;
    let levels = Levels {
        bodies_bytes: app.bodies.used() + app.small_bodies.used(),
        answers_bytes: app.answers.used(),
        event_streams: app.events.streams(),
        events_lost: app.events.lost(),
        certificate_expires_s: app.tls.as_ref().and_then(|tls| tls.expires_s()),
    };
    let page = app.metrics.page(&app.client, levels).await?;
    let kind = HeaderValue::from_static(OPENMETRICS);
    let cache = HeaderValue::from_static("no-store");
    Ok(([(CONTENT_TYPE, kind), (CACHE_CONTROL, cache)], page).into_response())
}
