//! cancel: remove one job.

use axum::extract::State;
use dormouse_core::command::Command;
use dormouse_core::op::{Cancel, Target};
use utoipa::IntoParams;

use super::change::{ChangedCode, ChangedOut, change};
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{InTheWay, Missing, Problems};
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::path::{IdPath, InJob, KeyPath};
use crate::http::response::HttpResult;

/// How to cancel.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct CancelQuery {
    /// Answer `conflict` instead of taking a leased job from its worker.
    #[param(default = false)]
    unless_leased: Option<bool>,
}

/// Cancel a job.
#[utoipa::path(
    delete,
    path = "/v1/jobs/{id}",
    tag = "jobs",
    params(IdPath, CancelQuery),
    responses(
        (status = 200, description = "It is gone", body = ChangedOut),
        Problems, Missing, InTheWay
    )
)]
pub(super) async fn cancel_job(
    State(app): State<App>,
    caller: Caller,
    InJob(target): InJob,
    params: Params,
) -> HttpResult {
    cancel(&app, &caller, target, params).await
}

/// Cancel the job that has a key.
#[utoipa::path(
    delete,
    path = "/v1/topics/{topic}/keys/{key}",
    tag = "jobs",
    params(KeyPath, CancelQuery),
    responses(
        (status = 200, description = "It is gone", body = ChangedOut),
        Problems, Missing, InTheWay
    )
)]
pub(super) async fn cancel_key(
    State(app): State<App>,
    caller: Caller,
    InJob(target): InJob,
    params: Params,
) -> HttpResult {
    cancel(&app, &caller, target, params).await
}

async fn cancel(app: &App, caller: &Caller, target: Target, mut params: Params) -> HttpResult {
    caller.check_target(app, Verb::Cancel, &target).await?;
    let unless_leased = params.flag("unless_leased")?.unwrap_or(false);
    params.finish()?;
    let command = Command::Cancel(vec![Cancel { target, unless_leased }]);
    change(app, ChangedCode::Cancelled, command).await
}
