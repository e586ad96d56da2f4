//! list: a page of the jobs in one state.

use axum::extract::State;
use bytes::Bytes;
use dormouse_core::job::Content;
use dormouse_core::limits::REPLY_BYTES_MAX;
use dormouse_core::op::{JobView, List, ListOrder, ListRange, check, check_limit};
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
use crate::scan::{JobFilter, Scan};
use crate::units::{InstantMs, SpanMs, parse_state};

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
    /// Only jobs whose error text begins with this.
    #[param(max_length = 1024)]
    error_prefix: Option<String>,
    /// Only jobs whose key begins with this.
    #[param(max_length = 256)]
    key_prefix: Option<String>,
    /// Only jobs that are dead, done or due for longer than this.
    #[param(inline)]
    older_than: Option<SpanMs>,
    /// Only jobs that are due, dead or done at this instant or later; not of leased ones.
    #[param(inline)]
    from: Option<InstantMs>,
    /// Only jobs that are due, dead or done before this instant; not of leased ones.
    #[param(inline)]
    to: Option<InstantMs>,
    /// Waiting jobs by their due time, whatever their priority.
    #[param(inline)]
    order: Option<JobOrder>,
    /// Dead or done jobs, the last one first.
    #[param(default = false)]
    newest: Option<bool>,
}

/// Orders of jobs.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "describes the query")]
pub(crate) enum JobOrder {
    /// By due time.
    Due,
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
    /// With a filter: the number of jobs that were looked at. There may be no job in the page, and
    /// a cursor nevertheless.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    looked: Option<u64>,
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
    let wanted = || Problem::malformed("give state=delayed, ready, leased, dead or done");
    let state = params.text("state").as_deref().and_then(parse_state);
    let cursor = params.text("cursor");
    let limit = params.parsed("limit", "a number")?.unwrap_or(LIMIT_DEFAULT);
    let bodies = params.flag("bodies")?.unwrap_or(true);
    let (error_prefix, key_prefix) = (params.text("error_prefix"), params.text("key_prefix"));
    let older_than_ms = params.span("older_than")?;
    let range = range(&mut params)?;
    params.finish()?;
    let list = List { topic, state: state.ok_or_else(wanted)?, cursor, limit, range };
    let now_ms = if older_than_ms.is_some() { app.now_ms().await? } else { 0 };
    let filter = JobFilter::new(error_prefix, key_prefix, older_than_ms, now_ms)?;
    if let Some(filter) = filter {
        return filtered(&app, &caller, list, filter, bodies).await;
    }
    // Pages may be large, so they are made one at a time.
    let _turn = app.pages.acquire().await;
    let page = app.client.call(list).await?;
    app.answers.room_for(bytes_of(&page.jobs, bodies))?;
    let jobs = page.jobs.iter().map(|view| JobOut::new(view, bodies)).collect();
    ok(&PageOut { jobs, cursor: page.cursor.as_deref(), looked: None })
}

/// Which jobs, and in what order.
fn range(params: &mut Params) -> Result<ListRange, Problem> {
    let instant =
        |field: &'static str, ms: Option<i64>| ms.map(|ms| check::instant(field, ms)).transpose();
    let (from, to) = (params.instant("from")?, params.instant("to")?);
    let newest = params.flag("newest")?.unwrap_or(false);
    let order = match params.text("order").as_deref() {
        None if newest => ListOrder::Newest,
        None => ListOrder::Usual,
        Some("due") if !newest => ListOrder::Due,
        Some("due") => return Err(Problem::malformed("give either order=due or newest=true")),
        Some(other) => {
            return Err(Problem::malformed(format!(
                "order is {other:?}; give due, or leave it out"
            )));
        }
    };
    Ok(ListRange { from_ms: instant("from", from)?, to_ms: instant("to", to)?, order })
}

/// A page of the jobs that fit a filter.
async fn filtered(
    app: &App,
    caller: &Caller,
    list: List,
    filter: JobFilter,
    bodies: bool,
) -> HttpResult {
    check_limit(list.limit)?;
    let mut scan = Scan::new(list.topic, list.state, list.cursor, filter).within(list.range);
    let (mut found, mut bytes): (Vec<JobView>, usize) = (Vec::new(), 0);
    while found.len() < list.limit && bytes < REPLY_BYTES_MAX as usize && scan.goes_on() {
        caller.judge(app)?;
        let _turn = app.pages.acquire().await;
        let mut jobs = scan.page(&app.client, list.limit - found.len()).await?;
        if !bodies {
            jobs.iter_mut().for_each(|view| view.job.content.body = Bytes::new());
        }
        bytes += bytes_of(&jobs, bodies);
        found.extend(jobs);
    }
    app.answers.room_for(bytes)?;
    let (looked, cursor) = scan.into_end();
    let jobs = found.iter().map(|view| JobOut::new(view, bodies)).collect();
    ok(&PageOut { jobs, cursor: cursor.as_deref(), looked: Some(looked) })
}

/// The estimated size of the jobs as JSON.
pub(super) fn bytes_of<'a>(jobs: impl IntoIterator<Item = &'a JobView>, bodies: bool) -> usize {
    let body = |content: &Content| body_json_bytes(content.body_kind, &content.body);
    let bytes = |view: &JobView| if bodies { body(&view.job.content) } else { 0 };
    jobs.into_iter().map(|view| bytes(view) + JOB_BYTES).sum()
}
