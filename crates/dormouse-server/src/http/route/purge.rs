//! purge: remove jobs of a topic that are not leased.

use axum::extract::State;
use dormouse_core::op::Purge;
use utoipa::{IntoParams, ToSchema};

use super::many::CountOut;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::problem::Problem;
use crate::http::response::{HttpResult, ok};
use crate::units::parse_state;

/// Which jobs.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct PurgeQuery {
    /// Only jobs in this state.
    #[param(inline)]
    state: Option<PurgedState>,
    /// Answer 409 `conflict` and remove nothing if there are more.
    #[param(minimum = 0)]
    at_most: Option<u64>,
}

/// States that can be purged.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "describes the query")]
pub(crate) enum PurgedState {
    Delayed,
    Ready,
    Dead,
    Done,
}

/// Remove all jobs of a topic that are not leased, or those of a state.
#[utoipa::path(
    delete,
    path = "/v1/topics/{topic}",
    tag = "topics",
    operation_id = "purge_topic",
    params(TopicPath, PurgeQuery),
    responses((status = 200, description = "The number of jobs", body = CountOut), Problems)
)]
pub(super) async fn purge(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    mut params: Params,
) -> HttpResult {
    caller.check(Verb::Purge, topic.as_str())?;
    let state = match params.text("state") {
        None => None,
        Some(word) => Some(parse_state(&word).ok_or_else(|| {
            Problem::malformed(format!("state is {word:?}; give delayed, ready, dead or done"))
        })?),
    };
    let at_most = params.parsed("at_most", "a number of jobs")?;
    params.finish()?;
    let count = app.client.call(Purge { topic, state, at_most }).await?;
    ok(&CountOut { count })
}
