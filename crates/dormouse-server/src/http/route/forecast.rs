//! forecast: the number of jobs that become due in each step of time.

use std::time::Duration;

use axum::extract::{FromRequestParts, State};
use dormouse_core::error::Error;
use dormouse_core::limits::AT_MS_MAX;
use dormouse_core::op::{Forecast, check};
use dormouse_core::topic::TopicName;
use hyper::http::request::Parts;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::access::Verb;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::problem::Problem;
use crate::http::response::{HttpResult, ok};
use crate::limits::{FORECAST_EXACT_STEPS_MAX, FORECAST_KEPT_MS, FORECAST_TOPICS_MAX};
use crate::units::{At, InstantMs, SpanMs};

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// The time range and its steps.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct ForecastQuery {
    /// Begin of the first step; default: now, over topics or with more than 50 steps rounded
    /// down to 5 seconds.
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
    /// Of a forecast over topics: which.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    topics: Option<Vec<String>>,
    from: At,
    to: At,
    step_ms: u64,
    /// One number per step; the last step may be shorter.
    counts: Vec<u64>,
    /// Of a forecast over topics, or from now with more than 50 steps: when the oldest was
    /// counted, at most 5 seconds ago.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    as_of: Option<At>,
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
    let range = Range::read(&app, &mut params).await?;
    params.finish()?;
    if !range.is_shared() {
        let counts = app.client.call(range.of(topic)).await?;
        return ok(&range.out(None, counts, None));
    }
    let range = range.rounded();
    let made = app.forecasts.get(&app.client, range.of(topic)).await?;
    let as_of = as_of(&app, made.age()).await?;
    ok(&range.out(None, made.counts.to_vec(), Some(as_of)))
}

/// Topics of a forecast.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct ForecastTopics {
    /// A topic; given 1 to 20 times.
    #[param(min_items = 1, max_items = 20)]
    topic: Vec<String>,
}

/// The query of a forecast over topics.
pub(super) struct TopicsParams(Params);

impl<S: Sync> FromRequestParts<S> for TopicsParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<TopicsParams, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        Params::parse_with_list(query, Some("topic")).map(TopicsParams)
    }
}

/// Count the jobs of several topics that become due in each step of time.
#[utoipa::path(
    get,
    path = "/v1/forecast",
    tag = "topics",
    params(ForecastTopics, ForecastQuery),
    responses((status = 200, description = "Jobs per step", body = ForecastOut), Problems)
)]
pub(super) async fn forecast_topics(
    State(app): State<App>,
    caller: Caller,
    TopicsParams(mut params): TopicsParams,
) -> HttpResult {
    caller.check_somewhere(Verb::Forecast)?;
    let names = params.list("topic");
    if names.is_empty() || names.len() > FORECAST_TOPICS_MAX {
        let given = names.len();
        let text = format!("{given} topics are given; give topic 1 to {FORECAST_TOPICS_MAX} times");
        return Err(Error::invalid(text).into());
    }
    let mut topics = Vec::with_capacity(names.len());
    for name in names {
        let topic = TopicName::new(&name)?;
        caller.check(Verb::Forecast, topic.as_str())?;
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    let range = Range::read(&app, &mut params).await?.rounded();
    params.finish()?;
    let (mut sums, mut age) = (Vec::new(), Duration::ZERO);
    for topic in &topics {
        caller.judge(&app)?;
        let made = app.forecasts.get(&app.client, range.of(topic.clone())).await?;
        sums.resize(made.counts.len(), 0);
        sums.iter_mut().zip(made.counts.iter()).for_each(|(sum, count)| *sum += count);
        age = age.max(made.age());
    }
    let as_of = as_of(&app, age).await?;
    let topics = topics.iter().map(ToString::to_string).collect();
    ok(&range.out(Some(topics), sums, Some(as_of)))
}

/// The time range of a request and its steps.
struct Range {
    from_ms: u64,
    to_ms: u64,
    step_ms: u64,
    /// It begins now, and ends a day later.
    is_from_now: bool,
    is_a_day: bool,
}

impl Range {
    async fn read(app: &App, params: &mut Params) -> Result<Range, Problem> {
        let (from, to) = (params.instant("from")?, params.instant("to")?);
        let step = params.span("step")?;
        let (is_from_now, is_a_day) = (from.is_none(), to.is_none());
        let from_ms = match from {
            Some(ms) => check::instant("from", ms)?,
            None => app.now_ms().await?,
        };
        let to_ms = to.map_or(Ok(from_ms.saturating_add(DAY_MS)), |ms| check::instant("to", ms))?;
        let step_ms = step.map_or(Ok(HOUR_MS), |ms| within("step", ms))?;
        Ok(Range { from_ms, to_ms, step_ms, is_from_now, is_a_day })
    }

    /// Whether it begins now and has many steps. Who names the begin, or asks for few, gets the
    /// counts of this instant.
    fn is_shared(&self) -> bool {
        let span_ms = self.to_ms.saturating_sub(self.from_ms);
        self.is_from_now && span_ms.div_ceil(self.step_ms.max(1)) > FORECAST_EXACT_STEPS_MAX
    }

    /// If it begins now, it begins where those of others begin who ask at about this time, so that
    /// they share one forecast. It has no more steps for that.
    fn rounded(mut self) -> Range {
        if !self.is_from_now {
            return self;
        }
        let rest_ms = self.from_ms % FORECAST_KEPT_MS;
        let steps = |range: &Range| {
            range.to_ms.saturating_sub(range.from_ms).div_ceil(range.step_ms.max(1))
        };
        let wanted = steps(&self);
        self.from_ms -= rest_ms;
        if self.is_a_day || steps(&self) > wanted {
            self.to_ms -= rest_ms;
        }
        self
    }

    fn of(&self, topic: TopicName) -> Forecast {
        let Range { from_ms, to_ms, step_ms, .. } = *self;
        Forecast { topic, from_ms, to_ms, step_ms }
    }

    fn out(&self, topics: Option<Vec<String>>, counts: Vec<u64>, as_of: Option<At>) -> ForecastOut {
        let Range { from_ms, to_ms, step_ms, .. } = *self;
        ForecastOut { topics, from: At(from_ms), to: At(to_ms), step_ms, counts, as_of }
    }
}

/// When something so old was made.
async fn as_of(app: &App, age: Duration) -> Result<At, Error> {
    let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    Ok(At(app.now_ms().await?.saturating_sub(age_ms)))
}

fn within(field: &str, ms: i64) -> Result<u64, Error> {
    u64::try_from(ms)
        .ok()
        .filter(|&ms| ms <= AT_MS_MAX)
        .ok_or_else(|| Error::invalid(format!("{field} is {ms} ms; give 0 to {AT_MS_MAX} ms")))
}
