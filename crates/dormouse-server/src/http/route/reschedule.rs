//! reschedule: change one job's due time.

use dormouse_core::op::{Reschedule, Target};
use serde::Deserialize;
use utoipa::ToSchema;

use super::change::{ChangedCode, ChangedOut, answer_change};
use super::job_routes::job_routes;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, BodyProblems, Problems, StateProblems};
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
    let (delay_ms, at_ms) = (form.delay.map(|delay| delay.0), form.at.map(|at| at.0));
    if delay_ms.is_none() && at_ms.is_none() {
        return Err(Problem::malformed("give either delay or at; /run makes it due now"));
    }
    let changed = app.client.call(Reschedule { target, delay_ms, at_ms }).await?;
    answer_change(ChangedCode::Rescheduled, changed)
}
