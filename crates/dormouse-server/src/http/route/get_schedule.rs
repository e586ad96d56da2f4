//! get_schedule: one schedule; and its ticks in a time of one's choice.

use axum::extract::State;
use dormouse_core::limits::{AT_MS_MAX, PREVIEW_TICKS_DEFAULT};
use dormouse_core::op::{GetSchedule, check};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, Problems};
use crate::http::caller::Caller;
use crate::http::form::ScheduleOut;
use crate::http::params::Params;
use crate::http::path::{InSchedule, SchedulePath};
use crate::http::response::{HttpResult, ok};
use crate::units::{At, InstantMs};

/// Read a schedule.
#[utoipa::path(
    get,
    path = "/v1/topics/{topic}/schedules/{name}",
    tag = "schedules",
    operation_id = "get_schedule",
    params(SchedulePath),
    responses(
        (status = 200, description = "The schedule", body = ScheduleOut<'static>),
        Problems, AbsenceProblems
    )
)]
pub(super) async fn get_schedule(
    State(app): State<App>,
    caller: Caller,
    InSchedule(topic, name): InSchedule,
    params: Params,
) -> HttpResult {
    caller.check(Verb::Get, topic.as_str())?;
    params.finish()?;
    let view = app.client.call(GetSchedule { topic, name }).await?;
    ok(&ScheduleOut::from(&view))
}

/// Which ticks.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct TicksQuery {
    /// All ticks are at this instant or later; default: now.
    #[param(inline)]
    from: Option<InstantMs>,
    /// All ticks are before this instant; default: no end.
    #[param(inline)]
    to: Option<InstantMs>,
    /// The largest number of ticks.
    #[param(minimum = 1, maximum = 1000, default = 10)]
    limit: Option<u32>,
}

/// Ticks of a schedule, whatever becomes of them.
#[derive(Serialize, ToSchema)]
#[schema(as = Ticks)]
pub(crate) struct TicksOut {
    /// The earliest first.
    ticks: Vec<At>,
}

/// Read the ticks of a schedule in a time, past or future.
#[utoipa::path(
    get,
    path = "/v1/topics/{topic}/schedules/{name}/ticks",
    tag = "schedules",
    operation_id = "schedule_ticks",
    params(SchedulePath, TicksQuery),
    responses(
        (status = 200, description = "The ticks", body = TicksOut),
        Problems, AbsenceProblems
    )
)]
pub(super) async fn ticks(
    State(app): State<App>,
    caller: Caller,
    InSchedule(topic, name): InSchedule,
    mut params: Params,
) -> HttpResult {
    caller.check(Verb::Get, topic.as_str())?;
    let at = |field, ms: Option<i64>| ms.map(|ms| check::instant(field, ms)).transpose();
    let from = at("from", params.instant("from")?)?;
    let to = at("to", params.instant("to")?)?;
    let limit = params.parsed("limit", "a number")?.unwrap_or(PREVIEW_TICKS_DEFAULT);
    params.finish()?;
    let view = app.client.call(GetSchedule { topic, name }).await?;
    let from_ms = match from {
        Some(ms) => ms,
        None => app.now_ms().await?,
    };
    let to_ms = to.unwrap_or(AT_MS_MAX);
    let ticks = view.ticks(from_ms, to_ms, limit, jiff::tz::db())?;
    ok(&TicksOut { ticks: ticks.into_iter().map(At).collect() })
}
