//! reserve_id: take a given job now, whatever its due time.

use axum::extract::State;
use dormouse_core::op::{ReserveId, Target};
use serde::Deserialize;
use utoipa::ToSchema;

use super::reserve::answer_jobs;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, BodyProblems, Problems, StateProblems};
use crate::http::caller::Caller;
use crate::http::form::JobsOut;
use crate::http::params::Params;
use crate::http::path::{IdPath, InId};
use crate::http::payload::Unread;
use crate::http::response::HttpResult;
use crate::units::SpanMs;

/// Options of the reserve of one job.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReserveJob)]
pub(crate) struct ReserveIdForm {
    /// The duration of the lease; default: the job's own.
    ttr: Option<SpanMs>,
}

/// Take a given job now, waiting or dead.
#[utoipa::path(
    post,
    path = "/v1/jobs/{id}/reserve",
    tag = "leases",
    params(IdPath),
    request_body = Option<ReserveIdForm>,
    responses(
        (status = 200, description = "The job", body = JobsOut<'static>),
        Problems, AbsenceProblems, StateProblems, BodyProblems
    )
)]
pub(super) async fn reserve_id(
    State(app): State<App>,
    caller: Caller,
    InId(id): InId,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check_target(&app, Verb::Reserve, &Target::Id(id)).await?;
    params.finish()?;
    let form: ReserveIdForm = body.json(&app).await?;
    let reserve = ReserveId { id, ttr_ms: form.ttr.map(|ttr| ttr.0), session: None };
    caller.check_ttr(&app, "ttr", reserve.ttr_ms, None)?;
    answer_jobs(&app, vec![caller.call(&app, reserve).await?])
}
