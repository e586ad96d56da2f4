//! reschedule: move one job's due time.

use dormouse_core::op::{Reschedule, Target};
use serde::Deserialize;
use utoipa::ToSchema;

use super::change::{ChangedCode, ChangedOut, answer_change};
use super::job_routes::job_routes;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{InTheWay, Missing, Problems, Sent};
use crate::http::params::Params;
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

job_routes! {
    patch reschedule(params: Params, payload: Payload) if Verb::Reschedule;
    /// Give a job another due time.
    reschedule_job = "/v1/jobs/{id}";
    /// Give the job that has a key another due time.
    reschedule_key = "/v1/topics/{topic}/keys/{key}";
    params(),
    request_body = RescheduleForm,
    responses(
        (status = 200, description = "It was moved", body = ChangedOut),
        Problems, Missing, InTheWay, Sent
    )
}

async fn reschedule(app: &App, target: Target, params: Params, payload: Payload) -> HttpResult {
    params.finish()?;
    let form: RescheduleForm = payload.json()?;
    let (delay_ms, at_ms) = (form.delay.map(|delay| delay.0), form.at.map(|at| at.0));
    if delay_ms.is_none() && at_ms.is_none() {
        return Err(Problem::malformed("give either delay or at; /run makes it due now"));
    }
    let changed = app.client.call(Reschedule { target, delay_ms, at_ms }).await?;
    answer_change(ChangedCode::Rescheduled, changed)
}
