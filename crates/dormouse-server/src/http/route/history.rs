//! history: what was counted since the start.

use axum::extract::State;
use dormouse_core::topic::TopicName;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::access::Verb;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::problem::Problem;
use crate::http::response::{HttpResult, ok};
use crate::pulse::{HistoryPart, Step};
use crate::units::At;

/// The part to read.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct HistoryQuery {
    /// Only this topic, which has only steps of `10s`.
    topic: Option<String>,
    /// The length of a step: `1s`, `10s` or `1m`.
    #[param(default = "10s")]
    step: Option<String>,
}

/// What was counted since the start; the lists have one item per step.
#[derive(Serialize, ToSchema)]
#[schema(as = History)]
pub(crate) struct HistoryOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    topic: Option<&'a str>,
    step_ms: u64,
    from: At,
    to: At,
    counts: HistoryCountsOut,
    levels: HistoryLevelsOut,
}

/// Changes within each step; `null` = unknown.
#[derive(Serialize, ToSchema)]
#[schema(as = HistoryCounts)]
pub(crate) struct HistoryCountsOut {
    put: Vec<Option<u32>>,
    reserve: Vec<Option<u32>>,
    ack: Vec<Option<u32>>,
    nack: Vec<Option<u32>>,
    dead: Vec<Option<u32>>,
}

/// Jobs at the end of each step; `null` = unknown.
#[derive(Serialize, ToSchema)]
#[schema(as = HistoryLevels)]
pub(crate) struct HistoryLevelsOut {
    waiting: Vec<Option<u32>>,
    ready: Vec<Option<u32>>,
    leased: Vec<Option<u32>>,
    dead: Vec<Option<u32>>,
}

impl<'a> HistoryOut<'a> {
    fn new(topic: Option<&'a str>, part: &HistoryPart, started_at: u64) -> HistoryOut<'a> {
        let count = |at: usize| {
            let counts = part.points.iter().map(|point| point.and_then(|point| point.counts));
            counts.map(|counts| counts.map(|counts| counts[at])).collect()
        };
        let level = |at: usize| {
            part.points.iter().map(|point| point.map(|point| point.levels[at])).collect()
        };
        let ready = part.points.iter().map(|point| point.and_then(|point| point.ready)).collect();
        HistoryOut {
            topic,
            step_ms: part.step_s * 1_000,
            from: At(started_at + part.from_s * 1_000),
            to: At(started_at + part.to_s * 1_000),
            counts: HistoryCountsOut {
                put: count(0),
                reserve: count(1),
                ack: count(2),
                nack: count(3),
                dead: count(4),
            },
            levels: HistoryLevelsOut { waiting: level(0), ready, leased: level(1), dead: level(2) },
        }
    }
}

/// Read what was counted since the start, in steps.
#[utoipa::path(
    get,
    path = "/v1/history",
    tag = "server",
    params(HistoryQuery),
    responses((status = 200, description = "The part", body = HistoryOut<'static>), Problems)
)]
pub(super) async fn history(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> HttpResult {
    let topic = params.text("topic").map(|name| TopicName::new(&name)).transpose();
    let step = params.text("step");
    params.finish()?;
    let topic = topic?;
    match &topic {
        Some(topic) => caller.check(Verb::Stats, topic.as_str())?,
        None => caller.check_verb(Verb::Stats)?,
    }
    let step = parse_step(step.as_deref().unwrap_or("10s"), topic.is_some())?;
    let part = app.pulse.history(topic.as_ref(), step);
    let started_at = app.pulse.started_at();
    ok(&HistoryOut::new(topic.as_ref().map(TopicName::as_str), &part, started_at))
}

fn parse_step(text: &str, is_of_topic: bool) -> Result<Step, Problem> {
    let known = Step::ALL.iter().find(|(word, _)| *word == text).map(|(_, step)| *step);
    match known {
        Some(step) if step == Step::TenSeconds || !is_of_topic => Ok(step),
        Some(_) => Err(Problem::malformed("step: of a topic only 10s is kept")),
        None => Err(Problem::malformed(format!("step is {text:?}; give 1s, 10s or 1m"))),
    }
}
