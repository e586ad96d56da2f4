//! resume: hand out a topic's jobs again.

use axum::extract::State;
use dormouse_core::op::Resume;

use super::pause::PausedOut;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{BodyProblems, Problems};
use crate::http::caller::Caller;
use crate::http::form::NoFields;
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::payload::Unread;
use crate::http::response::{HttpResult, ok};

/// Hand out a topic's jobs again.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/resume",
    tag = "topics",
    operation_id = "resume_topic",
    params(TopicPath),
    request_body = Option<NoFields>,
    responses(
        (status = 200, description = "Not paused", body = PausedOut<'static>),
        Problems, BodyProblems
    )
)]
pub(super) async fn resume(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Resume, topic.as_str())?;
    params.finish()?;
    let NoFields {} = body.json(&app).await?;
    app.client.call(Resume(topic.clone())).await?;
    ok(&PausedOut { topic: topic.as_str(), paused: false, paused_ms: None })
}
