//! get: look at one job.

use axum::extract::State;
use dormouse_core::command::{Command, Reply};
use dormouse_core::op::Target;

use super::change::only;
use crate::access::Verb;
use crate::client::unexpected;
use crate::http::App;
use crate::http::api::{Missing, Problems};
use crate::http::caller::Caller;
use crate::http::form::JobOut;
use crate::http::params::Params;
use crate::http::path::{IdPath, InJob, KeyPath};
use crate::http::response::{HttpResult, ok};

/// Look at a job.
#[utoipa::path(
    get,
    path = "/v1/jobs/{id}",
    tag = "jobs",
    params(IdPath),
    responses((status = 200, description = "The job", body = JobOut<'static>), Problems, Missing)
)]
pub(super) async fn get_job(
    State(app): State<App>,
    caller: Caller,
    InJob(target): InJob,
    params: Params,
) -> HttpResult {
    get(&app, &caller, target, params).await
}

/// Look at the job that has a key.
#[utoipa::path(
    get,
    path = "/v1/topics/{topic}/keys/{key}",
    tag = "jobs",
    params(KeyPath),
    responses((status = 200, description = "The job", body = JobOut<'static>), Problems, Missing)
)]
pub(super) async fn get_key(
    State(app): State<App>,
    caller: Caller,
    InJob(target): InJob,
    params: Params,
) -> HttpResult {
    get(&app, &caller, target, params).await
}

async fn get(app: &App, caller: &Caller, target: Target, params: Params) -> HttpResult {
    caller.check_target(app, Verb::Get, &target).await?;
    params.finish()?;
    let view = match app.client.call(Command::Get(vec![target])).await? {
        Reply::Views(views) => only(views)?,
        other => return Err(unexpected(&other).into()),
    };
    ok(&JobOut::new(&view, true))
}
