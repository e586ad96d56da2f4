//! forecast: the number of jobs that become due in each step of time.

use axum::extract::State;
use dormouse_core::error::Error;
use dormouse_core::limits::AT_MS_MAX;
use dormouse_core::op::{Forecast, check};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::access::Verb;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::response::{HttpResult, ok};
use crate::units::{At, InstantMs, SpanMs};

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// The time range and its steps.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct ForecastQuery {
    /// Begin of the first step; default: now.
    #[param(inline)]
    from: Option<InstantMs>,
    /// End of the last step; default: a day after `from`.
    #[param(inline)]
    to: Option<InstantMs>,
    /// Length of a step; default: an hour. At most 1,000 steps.
    #[param(inline)]
    step: Option<SpanMs>,
}

/// Numbers of jobs that become due.
#[derive(Serialize, ToSchema)]
#[schema(as = Forecast)]
pub(crate) struct ForecastOut {
    from: At,
    to: At,
    step_ms: u64,
    /// One number per step; the last step may be shorter.
    counts: Vec<u64>,
}

/// Count the jobs of a topic that become due in each step of time.
#[utoipa::path(
    get,
    path = "/v1/topics/{topic}/forecast",
    tag = "topics",
    params(TopicPath, ForecastQuery),
    responses((status = 200, description = "Jobs per step", body = ForecastOut), Problems)
)]
pub(super) async fn forecast(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    mut params: Params,
) -> HttpResult {
    caller.check(Verb::Forecast, topic.as_str())?;
    let (from, to) = (params.instant("from")?, params.instant("to")?);
    let step = params.span("step")?;
    params.finish()?;
    let from_ms = match from {
        Some(ms) => check::instant("from", ms)?,
        None => app.now_ms().await?,
    };
    let to_ms = to.map_or(Ok(from_ms.saturating_add(DAY_MS)), |ms| check::instant("to", ms))?;
    let step_ms = step.map_or(Ok(HOUR_MS), |ms| within("step", ms))?;
    let counts = app.client.call(Forecast { topic, from_ms, to_ms, step_ms }).await?;
    ok(&ForecastOut { from: At(from_ms), to: At(to_ms), step_ms, counts })
}

fn within(field: &str, ms: i64) -> Result<u64, Error> {
    u64::try_from(ms)
        .ok()
        .filter(|&ms| ms <= AT_MS_MAX)
        .ok_or_else(|| Error::invalid(format!("{field} is {ms} ms; give 0 to {AT_MS_MAX} ms")))
}
