//! advance: move the clock of a server that was started for tests.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use dormouse_core::error::Error;
use dormouse_core::limits::DELAY_MS_MAX;
use dormouse_core::op::check;
use serde::{Deserialize, Serialize};

use crate::access::Verb;
use crate::http::App;
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::payload::Unread;
use crate::http::response::{HttpResult, ok};
use crate::units::{At, SpanMs};

/// How far.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdvanceForm {
    by: SpanMs,
}

/// Where the clock is now.
#[derive(Serialize)]
pub(crate) struct AdvanceOut {
    now: At,
}

/// Not part of the OpenAPI document: the path exists only with `--test-clock`.
pub(super) async fn advance(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check_verb(Verb::Advance)?;
    params.finish()?;
    let form: AdvanceForm = body.json(&app).await?;
    let by = Duration::from_millis(check::span("by", form.by.0, 0, DELAY_MS_MAX)?);
    let Some(clock) = app.test_clock.as_ref().map(Arc::clone) else {
        return Err(Error::invalid("this server follows real time").into());
    };
    let moved = tokio::task::spawn_blocking(move || clock(by)).await;
    let now = moved.map_err(|_| Error::unavailable("the clock broke off; see the log"))??;
    ok(&AdvanceOut { now: At(now) })
}
