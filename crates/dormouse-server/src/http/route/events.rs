//! events: a stream of the changes of jobs.

use std::future::Future;

use axum::extract::State;
use bytes::Bytes;
use dormouse_core::topic::TopicName;
use hyper::HeaderMap;

use crate::access::Verb;
use crate::events::{Feed, Filter, StartAt};
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::problem::Problem;
use crate::http::response::HttpResult;
use crate::http::stream::{Pieces, stream};

const LAST_EVENT_ID: &str = "last-event-id";

/// Follow the changes of jobs as server-sent events. Without `topic` and `prefix`: of all topics
/// that the token allows.
#[utoipa::path(
    get,
    path = "/v1/events",
    tag = "server",
    params(
        ("topic" = Option<String>, Query, description = "Only events of this topic"),
        ("prefix" = Option<String>, Query, description = "Only events of topics with this prefix"),
        ("after" = Option<String>, Query, description = "Resume after the event of this id"),
        ("Last-Event-ID" = Option<String>, Header, description = "As `after`, which it overrides")
    ),
    responses(
        (status = 200, description = "An endless stream", body = String,
            content_type = "text/event-stream"),
        Problems
    )
)]
pub(super) async fn events(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    mut params: Params,
) -> HttpResult {
    let topic = params.text("topic").map(|name| TopicName::new(&name)).transpose()?;
    let prefix = params.text("prefix");
    let from = read_from(&headers, params.text("after").as_deref())?;
    params.finish()?;
    match &topic {
        Some(topic) => caller.check(Verb::Events, topic.as_str())?,
        // The stream omits topics that the caller may not see.
        None if caller.grant().may_somewhere(Verb::Events) => {}
        None => caller.check_verb(Verb::Events)?,
    }
    let (access, grant) = (app.access.clone(), caller.grant().clone());
    let filter = Filter { access, grant, topic, prefix };
    let feed = app.events.follow(caller.claimant().clone(), from, filter)?;
    Ok(stream(feed))
}

/// A browser that reconnects sends the header, and the query of its first request.
fn read_from(headers: &HeaderMap, after: Option<&str>) -> Result<StartAt, Problem> {
    let header = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty());
    if let Some(value) = header {
        // A browser cannot handle an error here: it would not reconnect.
        let mark = value.to_str().ok().and_then(|text| text.parse().ok());
        return Ok(mark.map_or(StartAt::Unknown, StartAt::Mark));
    }
    let Some(after) = after.filter(|text| !text.is_empty()) else { return Ok(StartAt::Now) };
    after.parse().map(StartAt::Mark).map_err(|()| {
        Problem::malformed(format!("after is {after:?}; give the id of an event, as 18c2f0a1-42"))
    })
}

impl Pieces for Feed {
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send {
        Feed::next(self)
    }
}
