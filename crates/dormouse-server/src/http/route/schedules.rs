//! schedules: a page of a topic's schedules.

use axum::extract::State;
use dormouse_core::op::{ScheduleState, ScheduleView, Schedules};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::list::LIMIT_DEFAULT;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{Problems, SizeProblems};
use crate::http::caller::Caller;
use crate::http::form::{ScheduleOut, ScheduleStateWord, body_json_bytes};
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::problem::Problem;
use crate::http::response::{HttpResult, ok};

/// A schedule without its body as JSON, about.
const SCHEDULE_BYTES: usize = 2 << 10;

/// Which schedules.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct SchedulesQuery {
    /// Only those in this state.
    #[param(inline)]
    state: Option<ScheduleStateWord>,
    /// The cursor of the previous page.
    cursor: Option<String>,
    /// The largest number of schedules in the page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
}

/// A page of schedules. It may be empty and not be the last: there are more as long as it has a
/// cursor.
#[derive(Serialize, ToSchema)]
#[schema(as = SchedulesPage)]
pub(crate) struct SchedulesOut<'a> {
    schedules: Vec<ScheduleOut<'a>>,
    /// The cursor of the next page; absent in the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cursor: Option<&'a str>,
}

impl<'a> SchedulesOut<'a> {
    pub(super) fn new(
        schedules: Vec<ScheduleOut<'a>>,
        cursor: Option<&'a str>,
    ) -> SchedulesOut<'a> {
        SchedulesOut { schedules, cursor }
    }
}

/// Read a page of a topic's schedules, those first that tick first.
#[utoipa::path(
    get,
    path = "/v1/topics/{topic}/schedules",
    tag = "schedules",
    operation_id = "list_schedules",
    params(TopicPath, SchedulesQuery),
    responses(
        (status = 200, description = "A page", body = SchedulesOut<'static>),
        Problems, SizeProblems
    )
)]
pub(super) async fn schedules(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    mut params: Params,
) -> HttpResult {
    caller.check(Verb::List, topic.as_str())?;
    let state = params.text("state").map(|word| parse_state(&word)).transpose()?;
    let cursor = params.text("cursor");
    let limit = params.parsed("limit", "a number")?.unwrap_or(LIMIT_DEFAULT);
    params.finish()?;
    // Pages may be large, so they are made one at a time.
    let _turn = app.pages.acquire().await;
    let page = app.client.call(Schedules { topic, state, cursor, limit }).await?;
    app.answers.room_for(bytes_of(&page.schedules))?;
    let schedules = page.schedules.iter().map(ScheduleOut::from).collect();
    ok(&SchedulesOut::new(schedules, page.cursor.as_deref()))
}

/// The estimated size of schedules as JSON.
pub(super) fn bytes_of(schedules: &[ScheduleView]) -> usize {
    let templates = schedules.iter().map(|view| &view.definition.template);
    templates.map(|one| body_json_bytes(one.body_kind, &one.body) + SCHEDULE_BYTES).sum()
}

pub(super) fn parse_state(word: &str) -> Result<ScheduleState, Problem> {
    use ScheduleState::{Broken, Busy, Paused, Waiting};
    let known = [Waiting, Paused, Busy, Broken].into_iter().find(|state| state.as_str() == word);
    known.ok_or_else(|| Problem::malformed("give state=waiting, paused, busy or broken"))
}
