//! cancel: remove one job.

use dormouse_core::op::{Cancel, Target};
use utoipa::IntoParams;

use super::change::{ChangedCode, ChangedOut, answer_change};
use super::job_routes::job_routes;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, Problems, StateProblems};
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
