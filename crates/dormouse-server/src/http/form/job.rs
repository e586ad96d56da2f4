//! A job in a response: leased, or only read.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use dormouse_core::job::{JobId, State, TickOrigin, Token};
use dormouse_core::op::{HeldBy, JobView, LeasedJob};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::BodyOut;
use crate::units::{At, BackoffOut};

/// An id: a string, because many languages read JSON numbers only up to 2^53.
#[derive(Clone, Copy, ToSchema)]
#[schema(as = Id, value_type = String, pattern = "^[0-9]{1,20}$", example = "1")]
pub(crate) struct IdOut(pub(crate) JobId);

impl Serialize for IdOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// The states of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = State)]
pub(crate) enum StateOut {
    /// Waits for its due time.
    Delayed,
    /// Due.
    Ready,
    /// Leased to a worker.
    Leased,
    /// No attempt is left; only a revive makes it ready again.
    Dead,
    /// Acked, and kept for a while.
    Done,
}

impl From<State> for StateOut {
    fn from(state: State) -> StateOut {
        match state {
            State::Delayed => StateOut::Delayed,
            State::Ready => StateOut::Ready,
            State::Leased => StateOut::Leased,
            State::Dead => StateOut::Dead,
            State::Done => StateOut::Done,
        }
    }
}

/// The limits of a topic that keep ready jobs from being taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = HeldBy)]
pub(crate) enum HeldByOut {
    /// As many jobs of the topic are leased as may be.
    LeasedMax,
    /// The rate of the topic.
    Rate,
    /// As many jobs of the group are leased as may be.
    GroupLeasedMax,
    /// The rate of the group.
    GroupRate,
}

impl From<HeldBy> for HeldByOut {
    fn from(limit: HeldBy) -> HeldByOut {
        match limit {
            HeldBy::LeasedMax => HeldByOut::LeasedMax,
            HeldBy::Rate => HeldByOut::Rate,
            HeldBy::GroupLeasedMax => HeldByOut::GroupLeasedMax,
            HeldBy::GroupRate => HeldByOut::GroupRate,
        }
    }
}

/// A token: `<id>.<fence>`.
#[derive(Clone, Copy, ToSchema)]
#[schema(
    as = Token,
    value_type = String,
    pattern = "^[0-9]{1,20}[.][0-9]{1,20}$",
    example = "1.4294967297"
)]
pub(crate) struct TokenOut(pub(crate) Token);

impl Serialize for TokenOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A key: text, or base64 if it is not text.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = Key)]
pub(crate) struct KeyOut<'a> {
    /// The producer's own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    key: Option<&'a str>,
    /// The producer's own id in base64, if it is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    key_base64: Option<String>,
}

impl<'a> KeyOut<'a> {
    pub(crate) fn new(key: Option<&'a Bytes>) -> KeyOut<'a> {
        match key.map(|key| (key, std::str::from_utf8(key))) {
            None => KeyOut::default(),
            Some((_, Ok(text))) => KeyOut { key: Some(text), key_base64: None },
            Some((key, Err(_))) => KeyOut { key: None, key_base64: Some(STANDARD.encode(key)) },
        }
    }
}

/// A group: text, or base64 if it is not text.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = Group)]
pub(crate) struct GroupOut<'a> {
    /// What the topic's limits of groups are counted by.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    group: Option<&'a str>,
    /// The group in base64, if it is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    group_base64: Option<String>,
}

impl<'a> GroupOut<'a> {
    pub(crate) fn new(group: Option<&'a Bytes>) -> GroupOut<'a> {
        match group.map(|group| (group, std::str::from_utf8(group))) {
            None => GroupOut::default(),
            Some((_, Ok(text))) => GroupOut { group: Some(text), group_base64: None },
            Some((group, Err(_))) => {
                GroupOut { group: None, group_base64: Some(STANDARD.encode(group)) }
            }
        }
    }
}

/// Headers as an object.
pub(crate) struct HeadersOut<'a>(&'a [(String, String)]);

impl Serialize for HeadersOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// The headers of a job, if it has some.
pub(crate) fn headers_out(headers: Option<&Arc<Vec<(String, String)>>>) -> Option<HeadersOut<'_>> {
    headers.map(|headers| HeadersOut(headers))
}

/// The tick that put a job; nothing of a job that somebody put.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = TickOfJob)]
pub(crate) struct TickOut<'a> {
    /// The schedule that put the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    schedule: Option<&'a str>,
    /// The tick that the job stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    tick: Option<At>,
    /// Ticks just before it that got no job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    ticks_missed: Option<u64>,
}

impl<'a> TickOut<'a> {
    fn new(tick: Option<&'a TickOrigin>) -> TickOut<'a> {
        TickOut {
            schedule: tick.map(|tick| tick.schedule.as_str()),
            tick: tick.map(|tick| At(tick.tick_ms)),
            ticks_missed: tick.map(|tick| tick.missed),
        }
    }
}

/// A job that is leased to the client.
#[derive(Serialize, ToSchema)]
#[schema(as = LeasedJob)]
pub(crate) struct LeasedOut<'a> {
    topic: &'a str,
    id: IdOut,
    #[serde(flatten)]
    key: KeyOut<'a>,
    /// Proof of this lease.
    token: TokenOut,
    /// The number of this attempt; the first is 1.
    attempt: u32,
    due_at: At,
    put_at: At,
    /// Time between its due time and the reserve.
    late_ms: u64,
    /// When the lease ends unless extended.
    expires_at: At,
    ttr_ms: u64,
    priority: u32,
    /// It dies if nobody takes it so long after it is due; 0 = never.
    expires_after_ms: u64,
    #[serde(flatten)]
    group: GroupOut<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>, nullable = false)]
    headers: Option<HeadersOut<'a>>,
    #[serde(flatten)]
    tick: TickOut<'a>,
    #[serde(flatten)]
    body: BodyOut<'a>,
}

impl<'a> From<&'a LeasedJob> for LeasedOut<'a> {
    fn from(job: &'a LeasedJob) -> LeasedOut<'a> {
        LeasedOut {
            topic: job.topic.as_str(),
            id: IdOut(job.id),
            key: KeyOut::new(job.key.as_ref()),
            token: TokenOut(job.token),
            attempt: job.attempt,
            due_at: At(job.due_at),
            put_at: At(job.put_at),
            late_ms: job.late_ms,
            expires_at: At(job.expires_at),
            ttr_ms: job.ttr_ms,
            priority: job.priority,
            expires_after_ms: job.expires_after_ms,
            group: GroupOut::new(job.group.as_ref()),
            headers: headers_out(job.headers.as_ref()),
            tick: TickOut::new(job.tick.as_deref()),
            body: BodyOut::new(job.body_kind, &job.body),
        }
    }
}

/// A job in any state.
#[derive(Serialize, ToSchema)]
#[schema(as = Job)]
pub(crate) struct JobOut<'a> {
    topic: &'a str,
    id: IdOut,
    #[serde(flatten)]
    key: KeyOut<'a>,
    state: StateOut,
    /// The limit that keeps this ready job from being taken now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    held_by: Option<HeldByOut>,
    /// When it is due; of a leased job, when its lease ends; of a dead one, when it died; of a done
    /// one, when it was acked.
    due_at: At,
    put_at: At,
    priority: u32,
    ttr_ms: u64,
    attempts: u32,
    attempts_max: u32,
    key_ttl_ms: u64,
    /// It dies if nobody takes it so long after it was due; 0 = it never does.
    expires_after_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    backoff: Option<BackoffOut>,
    reserves: u32,
    expiries: u32,
    releases: u32,
    kills: u32,
    kicks: u32,
    /// The error text of the last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    error: Option<Lossy<'a>>,
    #[serde(flatten)]
    group: GroupOut<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>, nullable = false)]
    headers: Option<HeadersOut<'a>>,
    #[serde(flatten)]
    tick: TickOut<'a>,
    #[serde(flatten)]
    body: BodyOut<'a>,
}

/// Bytes as text, for display: those that are not UTF-8 are replaced.
pub(crate) struct Lossy<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Lossy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.0))
    }
}

impl Serialize for Lossy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'a> JobOut<'a> {
    /// The job, with or without its body.
    pub(crate) fn new(view: &'a JobView, with_body: bool) -> JobOut<'a> {
        let (content, progress) = (&view.job.content, &view.job.progress);
        let body = match with_body {
            true => BodyOut::new(content.body_kind, &content.body),
            false => BodyOut::default(),
        };
        JobOut {
            topic: view.topic.as_str(),
            id: IdOut(view.job.id),
            key: KeyOut::new(view.job.key()),
            state: StateOut::from(view.state),
            held_by: view.held_by.map(HeldByOut::from),
            due_at: At(view.due_at),
            put_at: At(content.put_at),
            priority: progress.priority,
            ttr_ms: content.ttr_ms,
            attempts: progress.attempts,
            attempts_max: content.attempts_max,
            key_ttl_ms: content.key_ttl_ms,
            expires_after_ms: content.expires_after_ms,
            backoff: content.backoff.as_deref().map(BackoffOut::from),
            reserves: progress.reserves,
            expiries: progress.expiries,
            releases: progress.releases,
            kills: progress.kills,
            kicks: progress.kicks,
            error: progress.error.as_deref().map(Lossy),
            group: GroupOut::new(content.group.as_ref()),
            headers: headers_out(content.headers.as_ref()),
            tick: TickOut::new(content.tick.as_deref()),
            body,
        }
    }
}
