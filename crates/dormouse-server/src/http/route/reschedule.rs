//! reschedule: move one job's due time.

use axum::extract::State;
use dormouse_core::command::Command;
use dormouse_core::op::{Reschedule, Target};
use serde::Deserialize;
use utoipa::ToSchema;

use super::change::{ChangedCode, ChangedOut, change};
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{InTheWay, Missing, Problems, Sent};
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::path::{IdPath, InJob, KeyPath};
use crate::http::payload::Payload;
use crate::http::problem::Problem;
use crate::http::response::HttpResult;
use crate::units::{InstantMs, SpanMs};

/// When it is due instead: one of the two.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Reschedule)]
pub(crate) struct RescheduleForm {
    /// So long from now.
    delay: Option<SpanMs>,
    /// Then.
    at: Option<InstantMs>,
}

/// Give a job another due time.
#[utoipa::path(
    patch,
    path = "/v1/jobs/{id}",
    tag = "jobs",
    params(IdPath),
    request_body = RescheduleForm,
    responses(
        (status = 200, description = "It was moved", body = ChangedOut),
        Problems, Missing, InTheWay, Sent
    )
)]
pub(super) async fn reschedule_job(
    State(app): State<App>,
    caller: Caller,
    InJob(target): InJob,
    params: Params,
    payload: Payload,
) -> HttpResult {
    reschedule(&app, &caller, target, params, payload).await
}

/// Give the job that has a key another due time.
#[utoipa::path(
    patch,
    path = "/v1/topics/{topic}/keys/{key}",
    tag = "jobs",
    params(KeyPath),
    request_body = RescheduleForm,
    responses(
        (status = 200, description = "It was moved", body = ChangedOut),
        Problems, Missing, InTheWay, Sent
    )
)]
pub(super) async fn reschedule_key(
    State(app): State<App>,
    caller: Caller,
    InJob(target): InJob,
    params: Params,
    payload: Payload,
) -> HttpResult {
    reschedule(&app, &caller, target, params, payload).await
}

async fn reschedule(
    app: &App,
    caller: &Caller,
    target: Target,
    params: Params,
    payload: Payload,
) -> HttpResult {
    caller.check_target(app, Verb::Reschedule, &target).await?;
    params.finish()?;
    let form: RescheduleForm = payload.json()?;
    let (delay_ms, at_ms) = (form.delay.map(|delay| delay.0), form.at.map(|at| at.0));
    if delay_ms.is_none() && at_ms.is_none() {
        return Err(Problem::malformed("give either delay or at; /run makes it due now"));
    }
    let command = Command::Reschedule(vec![Reschedule { target, delay_ms, at_ms }]);
    change(app, ChangedCode::Rescheduled, command).await
}
