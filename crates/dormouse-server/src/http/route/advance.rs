//! advance: move the clock of a server that was started for tests.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use dormouse_core::error::Error;
use dormouse_core::limits::DELAY_MS_MAX;
use dormouse_core::op::check;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::no_path;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, BodyProblems, Problems};
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::payload::Unread;
use crate::http::response::{HttpResult, ok};
use crate::units::{At, SpanMs};

/// How far.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Advance)]
pub(crate) struct AdvanceForm {
    /// How far.
    by: SpanMs,
}

/// Where the clock is now.
#[derive(Serialize, ToSchema)]
#[schema(as = ClockOut)]
pub(crate) struct AdvanceOut {
    now: At,
}

/// Move the clock of a server that was started with `--test-clock`.
///
/// Everything that comes due in between happens, in order, before the response. A server that
/// follows real time has nothing at this path.
#[utoipa::path(
    post,
    path = "/v1/test/advance",
    tag = "server",
    request_body = AdvanceForm,
    responses(
        (status = 200, description = "Where the clock is", body = AdvanceOut),
        Problems, AbsenceProblems, BodyProblems
    )
)]
pub(super) async fn advance(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check_verb(Verb::Advance)?;
    let Some(clock) = app.test_clock.as_ref().map(Arc::clone) else { return Err(no_path().await) };
    params.finish()?;
    let form: AdvanceForm = body.json(&app).await?;
    let by = Duration::from_millis(check::span("by", form.by.0, 0, DELAY_MS_MAX)?);
    let moved = tokio::task::spawn_blocking(move || clock(by)).await;
    let now = moved.map_err(|_| Error::unavailable("the clock broke off; see the log"))??;
    ok(&AdvanceOut { now: At(now) })
}
