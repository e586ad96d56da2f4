//! Measures every request by the template of its path, because the path itself could be anything;
//! and keeps the changes by operators.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hyper::{Method, StatusCode};

use super::App;
use super::browser::{LOOKS_BY_POST, is_from_ui};
use crate::audit::{Audit, AuditEntry};
use crate::metrics::Stopwatch;
use crate::units::wall_ms;
use crate::visitor::Visitor;

/// Calls that change something and are no operator's: the work itself.
const WORK: [&str; 12] = [
    "/v1/topics/{topic}/jobs",
    "/v1/topics/{topic}/reserve",
    "/v1/reserve",
    "/v1/jobs/{id}/reserve",
    "/v1/ack",
    "/v1/nack",
    "/v1/release",
    "/v1/extend",
    "/v1/kill",
    "/v1/locks/{name}/acquire",
    "/v1/locks/{name}/renew",
    "/v1/locks/{name}/release",
];

/// A change by an operator, perhaps. It is kept when it is dropped: also if the client left before
/// the answer, since the change may have happened.
struct Change {
    audit: Arc<Audit>,
    visitor: Arc<Visitor>,
    call: String,
    target: String,
    ui: bool,
    status: Option<StatusCode>,
}

impl Drop for Change {
    fn drop(&mut self) {
        // On one connection requests come one after the other, so the last caller is this one.
        let caller = self.visitor.caller();
        if caller.is_operator {
            self.audit.note(AuditEntry {
                at: wall_ms(),
                token: caller.token,
                peer: self.visitor.address,
                call: std::mem::take(&mut self.call),
                target: std::mem::take(&mut self.target),
                status: self.status.map(|status| status.as_u16()),
                ui: self.ui,
            });
        }
    }
}

/// Passes the request on, and counts its status and duration.
pub(super) async fn measure(State(app): State<App>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let mut change = route.as_ref().and_then(|route| change_of(&app, route.as_str(), &request));
    let watch = Stopwatch::start();
    let response = next.run(request).await;
    let route = route.as_ref().map(MatchedPath::as_str);
    let status = response.status();
    app.metrics.answered(route, &method, status, watch.elapsed());
    if let Some(change) = &mut change {
        change.status = Some(status);
    }
    response
}

/// A request that operators send.
fn change_of(app: &App, route: &str, request: &Request) -> Option<Change> {
    let method = request.method();
    let is_look = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    if is_look || LOOKS_BY_POST.contains(&route) || WORK.contains(&route) {
        return None;
    }
    Some(Change {
        audit: Arc::clone(&app.audit),
        visitor: request.extensions().get::<Arc<Visitor>>().cloned()?,
        call: format!("{method} {route}"),
        target: request.uri().path().to_owned(),
        ui: is_from_ui(request.headers()),
        status: None,
    })
}
