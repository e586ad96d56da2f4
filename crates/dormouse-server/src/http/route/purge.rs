//! purge: remove all jobs of a topic that are not leased.

use axum::extract::State;
use dormouse_core::op::Purge;

use super::many::CountOut;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::response::{HttpResult, ok};

/// Remove all jobs of a topic that are not leased.
#[utoipa::path(
    delete,
    path = "/v1/topics/{topic}",
    tag = "topics",
    operation_id = "purge_topic",
    params(TopicPath),
    responses((status = 200, description = "The number of jobs", body = CountOut), Problems)
)]
pub(super) async fn purge(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
) -> HttpResult {
    caller.check(Verb::Purge, topic.as_str())?;
    params.finish()?;
    let count = app.client.call(Purge(topic)).await?;
    ok(&CountOut { count })
}
