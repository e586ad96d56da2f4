//! explain: why a job is where it is, and what happens next, in words and codes.

use dormouse_core::command::only;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::State;
use dormouse_core::op::{Forecast, Get, JobView, Stats, Target, TopicStats};
use serde::Serialize;
use utoipa::ToSchema;

use super::job_routes::job_routes;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, Problems};
use crate::http::form::{HeldByOut, IdOut, KeyOut, Lossy, StateOut};
use crate::http::params::Params;
use crate::http::response::{HttpResult, ok};
use crate::units::At;

job_routes! {
    get explain(params: Params) if Verb::Get;
    /// Explain why a job is where it is.
    explain_job = "/v1/jobs/{id}/explain";
    /// Explain why the job that has a key is where it is.
    explain_key = "/v1/topics/{topic}/keys/{key}/explain";
    params(),
    responses(
        (status = 200, description = "The reasons", body = ExplainOut<'static>),
        Problems, AbsenceProblems
    )
}

/// Why a job is where it is.
#[derive(Serialize, ToSchema)]
#[schema(as = Explanation)]
pub(crate) struct ExplainOut<'a> {
    id: IdOut,
    topic: &'a str,
    #[serde(flatten)]
    key: KeyOut<'a>,
    state: StateOut,
    because: Vec<ReasonOut<'a>>,
    next: NextOut,
    /// When the job dies if nobody takes it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    dies_at: Option<At>,
}

/// What keeps a job where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReasonCode {
    /// It is not due yet.
    Delayed,
    /// Its topic is paused.
    Paused,
    /// A limit of its topic.
    Held,
    /// Others became due before it.
    Behind,
    /// No reserve waits on its topic.
    NoConsumer,
    /// A worker has it.
    Leased,
    /// It is dead.
    Dead,
    /// It was acked, and is kept.
    Done,
    /// Its key stays taken for a while after the ack.
    KeyHeld,
}

/// One reason.
#[derive(Serialize, ToSchema)]
#[schema(as = Reason)]
pub(crate) struct ReasonOut<'a> {
    code: ReasonCode,
    /// The same in words.
    text: String,
    /// The end of it, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    until: Option<At>,
    /// The begin of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    since: Option<At>,
    /// The limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    by: Option<HeldByOut>,
    /// A number of jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    jobs: Option<u64>,
    /// The error text of a dead job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    error: Option<Lossy<'a>>,
}

impl ReasonOut<'_> {
    fn new(code: ReasonCode, text: String) -> ReasonOut<'static> {
        ReasonOut { code, text, until: None, since: None, by: None, jobs: None, error: None }
    }
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NextCode {
    /// It becomes ready.
    Due,
    /// Its topic gives jobs again.
    Resume,
    /// A limit makes room.
    Limit,
    /// A worker takes it.
    Reserve,
    /// Its lease ends, and it is ready again.
    Ready,
    /// Its last lease ends, and it is dead.
    Dead,
    /// Nothing, until somebody revives or cancels it.
    Revive,
    /// It is removed.
    Removed,
}

/// The next step of a job's life.
#[derive(Serialize, ToSchema)]
#[schema(as = NextStep)]
pub(crate) struct NextOut {
    code: NextCode,
    /// The same in words.
    text: &'static str,
    /// When, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    at: Option<At>,
}

async fn explain(app: &App, target: Target, params: Params) -> HttpResult {
    params.finish()?;
    let view = only(app.client.call(Get(vec![target])).await?)?;
    let stats = match app.client.call(Stats { topic: Some(view.topic.clone()) }).await {
        Err(error) if error.code == Code::NotFound => TopicStats::default(),
        stats => stats?,
    };
    let behind = if view.state == State::Ready { behind(app, &view).await? } else { 0 };
    let now_ms = app.now_ms().await?;
    let due_at = view.due_at;
    let expires_after_ms = view.job.content.expires_after_ms;
    let can_die = matches!(view.state, State::Delayed | State::Ready) && expires_after_ms > 0;
    ok(&ExplainOut {
        id: IdOut(view.job.id),
        topic: view.topic.as_str(),
        key: KeyOut::new(view.job.key()),
        state: StateOut::from(view.state),
        because: reasons(&view, &stats, behind, now_ms),
        next: next(&view, &stats, now_ms),
        dies_at: can_die.then(|| At(due_at.saturating_add(expires_after_ms))),
    })
}

/// How many waiting jobs of the topic became due before this one. It costs a rank in each lane, not
/// a look at the jobs.
async fn behind(app: &App, view: &JobView) -> Result<u64, Error> {
    let to_ms = view.due_at;
    if to_ms == 0 {
        return Ok(0);
    }
    let forecast = Forecast { topic: view.topic.clone(), from_ms: 0, to_ms, step_ms: to_ms };
    Ok(app.client.call(forecast).await?.into_iter().sum())
}

/// When the pause of the topic ends; `None` = it is not paused, or nobody knows.
fn pause_end(stats: &TopicStats, now_ms: u64) -> Option<At> {
    stats.paused.flatten().map(|rest_ms| At(now_ms.saturating_add(rest_ms)))
}

fn reasons<'a>(
    view: &'a JobView,
    stats: &TopicStats,
    behind: u64,
    now_ms: u64,
) -> Vec<ReasonOut<'a>> {
    let at = At(view.due_at);
    let mut reasons = Vec::new();
    let (code, text) = match view.state {
        State::Delayed => (ReasonCode::Delayed, format!("it is not due before {at}")),
        State::Leased => (ReasonCode::Leased, format!("a worker has it, until {at} at least")),
        State::Dead => (ReasonCode::Dead, format!("it is dead since {at}")),
        State::Done => (ReasonCode::Done, format!("it was acked at {at}, and is kept")),
        State::Ready => return reasons_of_ready(view, stats, behind, now_ms),
    };
    let mut first = ReasonOut::new(code, text);
    match view.state {
        State::Delayed | State::Leased => first.until = Some(at),
        _ => first.since = Some(at),
    }
    if view.state == State::Dead {
        first.error = view.job.progress.error.as_deref().map(Lossy);
    }
    reasons.push(first);
    if view.state == State::Delayed {
        reasons.extend(paused(stats, now_ms));
    }
    reasons.extend(key_held(view, now_ms));
    reasons
}

fn reasons_of_ready<'a>(
    view: &JobView,
    stats: &TopicStats,
    behind: u64,
    now_ms: u64,
) -> Vec<ReasonOut<'a>> {
    let mut reasons: Vec<ReasonOut<'a>> = paused(stats, now_ms).into_iter().collect();
    if let Some(limit) = view.held_by {
        let text = format!("the limit {} of the topic holds it", limit.as_str());
        let by = Some(HeldByOut::from(limit));
        reasons.push(ReasonOut { by, ..ReasonOut::new(ReasonCode::Held, text) });
    }
    if behind > 0 {
        let text = format!("{behind} waiting jobs of the topic became due before it");
        let jobs = Some(behind);
        reasons.push(ReasonOut { jobs, ..ReasonOut::new(ReasonCode::Behind, text) });
    }
    if stats.waiters == 0 {
        let text = "no reserve waits on the topic now".to_owned();
        reasons.push(ReasonOut::new(ReasonCode::NoConsumer, text));
    }
    reasons
}

/// Of a job that is done: its key may be taken still.
fn key_held(view: &JobView, now_ms: u64) -> Option<ReasonOut<'static>> {
    view.job.key().filter(|_| view.state == State::Done)?;
    let until_ms = view.due_at.saturating_add(view.job.content.key_ttl_ms);
    let until = Some(At(until_ms)).filter(|_| until_ms > now_ms)?;
    let text = format!("its key is held until {until}: a put with it is a duplicate");
    Some(ReasonOut { until: Some(until), ..ReasonOut::new(ReasonCode::KeyHeld, text) })
}

fn paused(stats: &TopicStats, now_ms: u64) -> Option<ReasonOut<'static>> {
    stats.paused?;
    let until = pause_end(stats, now_ms);
    let text = match until {
        Some(until) => format!("the topic is paused until {until}"),
        None => "the topic is paused until somebody resumes it".to_owned(),
    };
    Some(ReasonOut { until, ..ReasonOut::new(ReasonCode::Paused, text) })
}

fn next(view: &JobView, stats: &TopicStats, now_ms: u64) -> NextOut {
    let at = At(view.due_at);
    let after = |ms: u64| Some(At(view.due_at.saturating_add(ms)));
    let attempts_max = view.job.content.attempts_max;
    let (code, text, at) = match view.state {
        State::Delayed => (NextCode::Due, "it becomes ready", Some(at)),
        State::Ready if stats.paused.is_some() => {
            (NextCode::Resume, "the topic is resumed", pause_end(stats, now_ms))
        }
        State::Ready if view.held_by.is_some() => (NextCode::Limit, "a limit makes room", None),
        State::Ready => (NextCode::Reserve, "a worker takes it by its next reserve", None),
        State::Leased if attempts_max > 0 && view.job.progress.attempts >= attempts_max => (
            NextCode::Dead,
            "it is dead, unless it is acked or extended before: this is its last attempt",
            Some(at),
        ),
        State::Leased => {
            (NextCode::Ready, "it is ready again, unless it is acked or extended before", Some(at))
        }
        State::Dead => match stats.settings.dead_ttl_ms {
            Some(dead_ttl_ms) => (NextCode::Removed, "it is removed", after(dead_ttl_ms)),
            None => (NextCode::Revive, "nothing, until somebody revives or cancels it", None),
        },
        State::Done => {
            let keep_done_ms = stats.settings.keep_done_ms.unwrap_or(0);
            (NextCode::Removed, "it is removed", after(keep_done_ms))
        }
    };
    NextOut { code, text, at }
}
