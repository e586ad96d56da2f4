//! pause: stop handing out a topic's jobs.

use axum::extract::State;
use dormouse_core::op::PauseTopic;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Verb;
use crate::http::App;
use crate::http::api::{BodyProblems, Problems};
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::payload::Unread;
use crate::http::response::{HttpResult, ok};
use crate::units::SpanMs;

/// The duration of the pause.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Pause)]
pub(crate) struct PauseForm {
    /// Default: until a resume.
    #[serde(rename = "for")]
    span: Option<SpanMs>,
}

impl PauseForm {
    pub(super) fn for_ms(&self) -> Option<i64> {
        self.span.map(|span| span.0)
    }
}

/// Whether a topic is paused.
#[derive(Serialize, ToSchema)]
#[schema(as = Paused)]
pub(crate) struct PausedOut<'a> {
    pub(crate) topic: &'a str,
    pub(crate) paused: bool,
    /// The rest of the pause; absent if it lasts until a resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) paused_ms: Option<i64>,
}

/// Stop handing out a topic's jobs. All other operations continue.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/pause",
    tag = "topics",
    operation_id = "pause_topic",
    params(TopicPath),
    request_body = Option<PauseForm>,
    responses(
        (status = 200, description = "Paused", body = PausedOut<'static>),
        Problems, BodyProblems
    )
)]
pub(super) async fn pause(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Pause, topic.as_str())?;
    params.finish()?;
    let form: PauseForm = body.json(&app).await?;
    let for_ms = form.for_ms();
    app.client.call(PauseTopic { topic: topic.clone(), for_ms }).await?;
    ok(&PausedOut { topic: topic.as_str(), paused: true, paused_ms: for_ms })
}
