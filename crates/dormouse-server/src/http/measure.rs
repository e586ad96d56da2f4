//! Measures every request by the template of its path; the path itself could be anything.

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::App;
use crate::metrics::Stopwatch;

/// Passes the request on, and counts its status and duration.
pub(super) async fn measure(State(app): State<App>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let watch = Stopwatch::start();
    let response = next.run(request).await;
    let route = route.as_ref().map(MatchedPath::as_str);
    app.metrics.answered(route, &method, response.status(), watch.elapsed());
    response
}
