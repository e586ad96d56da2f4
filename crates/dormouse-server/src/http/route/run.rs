//! run: make one job due now, or many.

use axum::extract::State;
use dormouse_core::op::{Reschedule, Target};
use serde::Deserialize;
use utoipa::ToSchema;

use super::change::{ChangedCode, ChangedOut, answer_change};
use super::ids::{ChangedResults, Ids, IdsRequest, answer_code, ids_form};
use super::job_routes::job_routes;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, BodyProblems, IdsProblems, Problems, StateProblems};
use crate::http::form::{IdOut, NoFields};
use crate::http::params::Params;
use crate::http::payload::Unread;
use crate::http::response::HttpResult;

job_routes! {
    post run(params: Params, body: Unread) if Verb::Reschedule;
    /// Make a job due now.
    run_job = "/v1/jobs/{id}/run";
    /// Make the job that has a key due now.
    run_key = "/v1/topics/{topic}/keys/{key}/run";
    params(),
    request_body = Option<NoFields>,
    responses(
        (status = 200, description = "The job is ready", body = ChangedOut),
        Problems, AbsenceProblems, StateProblems, BodyProblems
    )
}

async fn run(app: &App, target: Target, params: Params, body: Unread) -> HttpResult {
    params.finish()?;
    let NoFields {} = body.json(app).await?;
    let now = Reschedule { target, delay_ms: None, at_ms: None };
    answer_change(ChangedCode::Rescheduled, app.client.call(now).await?)
}

/// Jobs, by their ids.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RunJobs)]
pub(crate) struct RunJobsForm {
    #[schema(value_type = Vec<IdOut>, min_items = 1, max_items = 1000)]
    ids: Ids,
}

ids_form!(RunJobsForm, Verb::Reschedule);

/// Make jobs due now.
#[utoipa::path(
    post,
    path = "/v1/jobs/run",
    tag = "jobs",
    request_body = RunJobsForm,
    responses(
        (status = 200, description = "The result of each id", body = ChangedResults),
        Problems, BodyProblems, IdsProblems
    )
)]
pub(super) async fn run_jobs(
    State(app): State<App>,
    request: IdsRequest<RunJobsForm>,
) -> HttpResult {
    let run = |id| Reschedule { target: Target::Id(id), delay_ms: None, at_ms: None };
    let moves: Vec<Reschedule> = request.present().map(run).collect();
    let replies = app.client.call(moves).await?;
    answer_code(ChangedCode::Rescheduled, request.results(replies))
}
