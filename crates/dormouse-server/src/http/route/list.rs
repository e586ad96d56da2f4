//! list: a page of the jobs in one state.

use axum::extract::State;
use dormouse_core::job::Content;
use dormouse_core::op::{JobView, List};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::reserve::JOB_BYTES;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{Problems, SizeProblems};
use crate::http::caller::Caller;
use crate::http::form::{JobOut, StateOut, body_json_bytes};
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::problem::Problem;
use crate::http::response::{HttpResult, ok};
use crate::units::parse_state;

/// Items of a page unless a number is given.
pub(super) const LIMIT_DEFAULT: usize = 100;

/// Which jobs.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct ListQuery {
    /// Jobs in this state.
    #[param(inline)]
    state: StateOut,
    /// The cursor of the previous page.
    cursor: Option<String>,
    /// The largest number of jobs in the page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// Whether the jobs have their bodies.
    #[param(default = true)]
    bodies: Option<bool>,
}

/// A page of jobs.
#[derive(Serialize, ToSchema)]
#[schema(as = JobsPage)]
pub(crate) struct PageOut<'a> {
    jobs: Vec<JobOut<'a>>,
    /// The cursor of the next page; absent in the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cursor: Option<&'a str>,
}

/// Read a page of jobs.
#[utoipa::path(
    get,
    path = "/v1/topics/{topic}/jobs",
    tag = "topics",
    operation_id = "list_jobs",
    params(TopicPath, ListQuery),
    responses(
        (status = 200, description = "A page", body = PageOut<'static>),
        Problems, SizeProblems
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    mut params: Params,
) -> HttpResult {
    caller.check(Verb::List, topic.as_str())?;
    let wanted = || Problem::malformed("give state=delayed, ready, leased or dead");
    let state = params.text("state").as_deref().and_then(parse_state);
    let cursor = params.text("cursor");
    let limit = params.parsed("limit", "a number")?.unwrap_or(LIMIT_DEFAULT);
    let bodies = params.flag("bodies")?.unwrap_or(true);
    params.finish()?;
    let list = List { topic, state: state.ok_or_else(wanted)?, cursor, limit };
    // Pages may be large, so they are made one at a time.
    let _turn = app.pages.acquire().await;
    let page = app.client.call(list).await?;
    app.answers.room_for(bytes_of(&page.jobs, bodies))?;
    let jobs = page.jobs.iter().map(|view| JobOut::new(view, bodies)).collect();
    ok(&PageOut { jobs, cursor: page.cursor.as_deref() })
}

/// The estimated size of the jobs as JSON.
fn bytes_of(jobs: &[JobView], bodies: bool) -> usize {
    let body = |content: &Content| body_json_bytes(content.body_kind, &content.body);
    let bytes = |view: &JobView| if bodies { body(&view.job.content) } else { 0 };
    jobs.iter().map(|view| bytes(view) + JOB_BYTES).sum()
}
