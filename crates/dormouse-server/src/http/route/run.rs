//! run: make one job due now.

use dormouse_core::op::{Reschedule, Target};

use super::change::{ChangedCode, ChangedOut, answer_change};
use super::job_routes::job_routes;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, BodyProblems, Problems, StateProblems};
use crate::http::form::NoFields;
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
