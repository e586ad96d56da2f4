//! reschedule: change one job's due time, or that of many.

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
use crate::http::form::IdOut;
use crate::http::params::Params;
use crate::http::payload::Unread;
use crate::http::problem::Problem;
use crate::http::response::HttpResult;
use crate::units::{InstantMs, SpanMs};

/// The new due time: one of the two.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Reschedule)]
pub(crate) struct RescheduleForm {
    /// Time until the job is due.
    delay: Option<SpanMs>,
    /// The instant at which the job is due.
    at: Option<InstantMs>,
}

job_routes! {
    patch reschedule(params: Params, body: Unread) if Verb::Reschedule;
    /// Change a job's due time.
    reschedule_job = "/v1/jobs/{id}";
    /// Change the due time of the job that has a key.
    reschedule_key = "/v1/topics/{topic}/keys/{key}";
    params(),
    request_body = RescheduleForm,
    responses(
        (status = 200, description = "The new due time", body = ChangedOut),
        Problems, AbsenceProblems, StateProblems, BodyProblems
    )
}

async fn reschedule(app: &App, target: Target, params: Params, body: Unread) -> HttpResult {
    params.finish()?;
    let form: RescheduleForm = body.json(app).await?;
    let (delay_ms, at_ms) = due(form.delay, form.at)?;
    let changed = app.client.call(Reschedule { target, delay_ms, at_ms }).await?;
    answer_change(ChangedCode::Rescheduled, changed)
}

/// The new due time of a request: one of the two must be given.
fn due(
    delay: Option<SpanMs>,
    at: Option<InstantMs>,
) -> Result<(Option<i64>, Option<i64>), Problem> {
    if delay.is_none() && at.is_none() {
        return Err(Problem::malformed("give either delay or at; /run makes it due now"));
    }
    Ok((delay.map(|delay| delay.0), at.map(|at| at.0)))
}

/// Jobs, and their new due time: one of the two.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RescheduleJobs)]
pub(crate) struct RescheduleJobsForm {
    #[schema(value_type = Vec<IdOut>, min_items = 1, max_items = 1000)]
    ids: Ids,
    /// Time until the jobs are due.
    delay: Option<SpanMs>,
    /// The instant at which the jobs are due.
    at: Option<InstantMs>,
}

ids_form!(RescheduleJobsForm, Verb::Reschedule);

/// Change the due time of jobs.
#[utoipa::path(
    post,
    path = "/v1/jobs/reschedule",
    tag = "jobs",
    request_body = RescheduleJobsForm,
    responses(
        (status = 200, description = "The result of each id", body = ChangedResults),
        Problems, BodyProblems, IdsProblems
    )
)]
pub(super) async fn reschedule_jobs(
    State(app): State<App>,
    mut request: IdsRequest<RescheduleJobsForm>,
) -> HttpResult {
    let (delay_ms, at_ms) = due(request.form.delay.take(), request.form.at.take())?;
    let moved = |id| Reschedule { target: Target::Id(id), delay_ms, at_ms };
    let moves: Vec<Reschedule> = request.present().map(moved).collect();
    let replies = app.client.call(moves).await?;
    answer_code(ChangedCode::Rescheduled, request.results(replies))
}
