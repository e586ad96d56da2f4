//! cancel: remove one job, or many.

use axum::extract::State;
use dormouse_core::op::{Cancel, Target};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::change::{ChangedCode, ChangedOut, answer_change};
use super::ids::{ChangedResults, Ids, IdsRequest, answer_code, ids_form};
use super::job_routes::job_routes;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, BodyProblems, IdsProblems, Problems, StateProblems};
use crate::http::form::IdOut;
use crate::http::params::Params;
use crate::http::response::HttpResult;

/// Options of a cancel.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct CancelQuery {
    /// Respond with `conflict` if the job is leased, instead of taking it from its worker.
    #[param(default = false)]
    unless_leased: Option<bool>,
}

job_routes! {
    delete cancel(params: Params) if Verb::Cancel;
    /// Cancel a job.
    cancel_job = "/v1/jobs/{id}";
    /// Cancel the job that has a key.
    cancel_key = "/v1/topics/{topic}/keys/{key}";
    params(, CancelQuery),
    responses(
        (status = 200, description = "The job is removed", body = ChangedOut),
        Problems, AbsenceProblems, StateProblems
    )
}

async fn cancel(app: &App, target: Target, mut params: Params) -> HttpResult {
    let unless_leased = params.flag("unless_leased")?.unwrap_or(false);
    params.finish()?;
    let changed = app.client.call(Cancel { target, unless_leased }).await?;
    answer_change(ChangedCode::Cancelled, changed)
}

/// Jobs to cancel.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CancelJobs)]
pub(crate) struct CancelJobsForm {
    #[schema(value_type = Vec<IdOut>, min_items = 1, max_items = 1000)]
    ids: Ids,
    /// Leave leased jobs to their workers: `conflict`.
    #[serde(default)]
    unless_leased: bool,
}

ids_form!(CancelJobsForm, Verb::Cancel);

/// Cancel jobs.
#[utoipa::path(
    post,
    path = "/v1/jobs/cancel",
    tag = "jobs",
    request_body = CancelJobsForm,
    responses(
        (status = 200, description = "The result of each id", body = ChangedResults),
        Problems, BodyProblems, IdsProblems
    )
)]
pub(super) async fn cancel_jobs(
    State(app): State<App>,
    request: IdsRequest<CancelJobsForm>,
) -> HttpResult {
    let unless_leased = request.form.unless_leased;
    let cancel = |id| Cancel { target: Target::Id(id), unless_leased };
    let cancels: Vec<Cancel> = request.present().map(cancel).collect();
    let replies = app.client.call(cancels).await?;
    answer_code(ChangedCode::Cancelled, request.results(replies))
}
