//! run: one job is due now.

use axum::extract::State;
use dormouse_core::command::Command;
use dormouse_core::op::{Reschedule, Target};

use super::change::{ChangedCode, ChangedOut, change};
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{InTheWay, Missing, Problems, Sent};
use crate::http::caller::Caller;
use crate::http::form::NoFields;
use crate::http::params::Params;
use crate::http::path::{IdPath, InJob, KeyPath};
use crate::http::payload::Payload;
use crate::http::response::HttpResult;

/// Make a job due now.
#[utoipa::path(
    post,
    path = "/v1/jobs/{id}/run",
    tag = "jobs",
    params(IdPath),
    request_body = Option<NoFields>,
    responses(
        (status = 200, description = "It is ready", body = ChangedOut),
        Problems, Missing, InTheWay, Sent
    )
)]
pub(super) async fn run_job(
    State(app): State<App>,
    caller: Caller,
    InJob(target): InJob,
    params: Params,
    payload: Payload,
) -> HttpResult {
    run(&app, &caller, target, params, payload).await
}

/// Make the job that has a key due now.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/keys/{key}/run",
    tag = "jobs",
    params(KeyPath),
    request_body = Option<NoFields>,
    responses(
        (status = 200, description = "It is ready", body = ChangedOut),
        Problems, Missing, InTheWay, Sent
    )
)]
pub(super) async fn run_key(
    State(app): State<App>,
    caller: Caller,
    InJob(target): InJob,
    params: Params,
    payload: Payload,
) -> HttpResult {
    run(&app, &caller, target, params, payload).await
}

async fn run(
    app: &App,
    caller: &Caller,
    target: Target,
    params: Params,
    payload: Payload,
) -> HttpResult {
    caller.check_target(app, Verb::Reschedule, &target).await?;
    params.finish()?;
    let NoFields {} = payload.json()?;
    let now = Reschedule { target, delay_ms: None, at_ms: None };
    change(app, ChangedCode::Rescheduled, Command::Reschedule(vec![now])).await
}
