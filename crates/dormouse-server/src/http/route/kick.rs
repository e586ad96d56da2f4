//! kick: make delayed jobs of a topic ready.

use axum::extract::State;
use dormouse_core::op::Kick;

use super::many::{CountOut, MaxForm, do_many};
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{BodyProblems, Problems};
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::payload::Unread;
use crate::http::response::HttpResult;

/// Make delayed jobs of a topic ready, the earliest first.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/kick",
    tag = "topics",
    operation_id = "kick_topic",
    params(TopicPath),
    request_body = Option<MaxForm>,
    responses(
        (status = 200, description = "The number of jobs", body = CountOut),
        Problems, BodyProblems
    )
)]
pub(super) async fn kick(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Kick, topic.as_str())?;
    params.finish()?;
    let form: MaxForm = body.json(&app).await?;
    let kick = |max| Kick { topic: topic.clone(), max };
    do_many(&app, &caller, &topic, form.max, |stats| stats.delayed, kick).await
}
