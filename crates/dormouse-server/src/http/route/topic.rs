//! topic: one topic's counts and settings.

use axum::extract::State;
use dormouse_core::op::Stats;

use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, Problems};
use crate::http::caller::Caller;
use crate::http::form::TopicOut;
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::response::{HttpResult, ok};

/// Read the counts and settings of a topic.
#[utoipa::path(
    get,
    path = "/v1/topics/{topic}",
    tag = "topics",
    operation_id = "get_topic",
    params(TopicPath),
    responses(
        (status = 200, description = "The topic", body = TopicOut<'static>),
        Problems, AbsenceProblems
    )
)]
pub(super) async fn topic(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
) -> HttpResult {
    caller.check(Verb::Stats, topic.as_str())?;
    params.finish()?;
    let stats = app.client.call(Stats { topic: Some(topic.clone()) }).await?;
    ok(&TopicOut::new(topic.as_str(), &stats))
}
