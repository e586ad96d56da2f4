//! run_schedule: a job of a schedule by request, now or for ticks of a time.

use axum::extract::State;
use dormouse_core::command::only;
use dormouse_core::op::RunSchedule;
use serde::Deserialize;
use utoipa::ToSchema;

use super::put::list;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, BodyProblems, Problems, PutProblems};
use crate::http::caller::Caller;
use crate::http::form::{NoFields, PutOut, PutResults};
use crate::http::params::Params;
use crate::http::path::{InSchedule, SchedulePath};
use crate::http::payload::Unread;
use crate::http::response::{HttpResult, json};
use crate::units::InstantMs;

/// The ticks to give.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Backfill)]
pub(crate) struct BackfillForm {
    /// Ticks at this instant or later.
    from: InstantMs,
    /// Ticks before this instant.
    to: InstantMs,
}

/// Put one job of a schedule now. Its ticks go on as if nothing had happened.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/schedules/{name}/run",
    tag = "schedules",
    operation_id = "run_schedule",
    params(SchedulePath),
    request_body = Option<NoFields>,
    responses(
        (status = 201, description = "The job", body = PutOut),
        Problems, AbsenceProblems, BodyProblems, PutProblems
    )
)]
pub(super) async fn run_schedule(
    State(app): State<App>,
    caller: Caller,
    InSchedule(topic, name): InSchedule,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Schedule, topic.as_str())?;
    params.finish()?;
    let NoFields {} = body.json(&app).await?;
    let out = PutOut::from(only(app.client.call(RunSchedule { topic, name, ticks: None }).await?)?);
    Ok(json(out.status(), &out))
}

/// Put a job for each tick of a time, at most 1,000, due now.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/schedules/{name}/backfill",
    tag = "schedules",
    operation_id = "backfill_schedule",
    params(SchedulePath),
    request_body = BackfillForm,
    responses(
        (status = 200, description = "The jobs", body = PutResults),
        (status = 201, description = "The only job", body = PutResults),
        Problems, AbsenceProblems, BodyProblems, PutProblems
    )
)]
pub(super) async fn backfill_schedule(
    State(app): State<App>,
    caller: Caller,
    InSchedule(topic, name): InSchedule,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Schedule, topic.as_str())?;
    params.finish()?;
    let form: BackfillForm = body.json(&app).await?;
    let ticks = Some((form.from.0, form.to.0));
    Ok(list(app.client.call(RunSchedule { topic, name, ticks }).await?))
}
