//! Schedules: the request, and a schedule in a response.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::op::{
    PutSchedule, PutScheduleReply, ScheduleConflict, ScheduleOutcome, ScheduleState, ScheduleView,
};
use dormouse_core::schedule::{
    Catchup, LastJob, Overlap, RuleSpec, ScheduleName, Template, TickCounts,
};
use dormouse_core::topic::TopicName;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::job::{GroupOut, HeadersOut, headers_out};
use super::put::{body_of, present};
use super::{BodyOut, IdOut};
use crate::units::{At, BackoffForm, BackoffOut, InstantMs, SpanMs};

/// A schedule; exactly one of `cron`, `every` and `gap`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewSchedule)]
pub(crate) struct ScheduleForm<'a> {
    /// 5 fields (minutes hours days months weekdays), 6 with seconds first, or a name like
    /// `@daily`.
    #[schema(max_length = 256, examples("0 3 * * 1-5"))]
    cron: Option<String>,
    /// An IANA name, `UTC`, or an offset like `+05:30`; only with `cron`. Default: UTC.
    #[schema(max_length = 64, examples("Europe/Berlin"))]
    zone: Option<String>,
    /// Ticks at this distance, counted from `start_at`; 100 ms to 100 years.
    every: Option<SpanMs>,
    /// Ticks this long after the job before has ended; 100 ms to 100 years.
    gap: Option<SpanMs>,
    /// The work of each job, as any JSON value; or `text`, or `base64`.
    #[serde(borrow, default, deserialize_with = "present")]
    #[schema(value_type = Option<serde_json::Value>)]
    body: Option<&'a RawValue>,
    /// The work, as a string.
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    /// The work, as bytes in base64.
    #[serde(borrow)]
    base64: Option<Cow<'a, str>>,
    /// Returned with each job.
    headers: Option<BTreeMap<String, String>>,
    /// A lower number is first.
    #[schema(default = 1024, minimum = 0, maximum = 4294967295u32)]
    priority: Option<u32>,
    /// The duration of a lease.
    ttr: Option<SpanMs>,
    /// The number of attempts after which a job is dead; 0 = no limit.
    #[schema(default = 16, minimum = 0, maximum = 4294967295u32)]
    attempts_max: Option<u32>,
    /// The delay after a failed attempt.
    backoff: Option<BackoffForm>,
    /// A job dies if nobody takes it so long after it was due; 0 = never. Default: the topic's.
    expires_after: Option<SpanMs>,
    /// What the topic's limits of groups are counted by.
    #[schema(min_length = 1, max_length = 256)]
    group: Option<String>,
    /// A tick while an earlier job of the schedule lives. Default: skip.
    overlap: Option<OverlapWord>,
    /// Ticks that passed while nothing ran. Default: one.
    catchup: Option<CatchupWord>,
    /// A tick that is later than this is missed.
    late_max: Option<SpanMs>,
    /// A job is due up to so much after its tick; at most 24 h.
    jitter: Option<SpanMs>,
    /// No tick before this.
    start_at: Option<InstantMs>,
    /// No tick after this.
    end_at: Option<InstantMs>,
    /// The schedule ends after so many jobs.
    #[schema(minimum = 1)]
    ticks_max: Option<u64>,
    /// What to do if there is a schedule of this name. Default: replace.
    on_conflict: Option<ScheduleConflictForm>,
    /// Only if the schedule has this version.
    #[schema(minimum = 1)]
    if_version: Option<u64>,
}

/// A tick while an earlier job of the schedule lives: waiting, leased or between two attempts.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Overlap)]
pub(crate) enum OverlapWord {
    /// Ticks pass until that job has ended.
    Skip,
    /// The latest tick is given once that job has ended.
    Wait,
    /// Jobs may live beside each other.
    Allow,
    /// That job is cancelled.
    Replace,
}

/// Ticks that passed while nothing ran.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Catchup)]
pub(crate) enum CatchupWord {
    /// The latest is given.
    One,
    /// Each is given, in order; only with overlap allow or wait.
    All,
}

/// What to do if there is a schedule of this name.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ScheduleConflict)]
pub(crate) enum ScheduleConflictForm {
    /// It gets this definition.
    Replace,
    /// It stays as it is.
    Keep,
    /// The put fails with `conflict`.
    Reject,
}

impl From<OverlapWord> for Overlap {
    fn from(word: OverlapWord) -> Overlap {
        match word {
            OverlapWord::Skip => Overlap::Skip,
            OverlapWord::Wait => Overlap::Wait,
            OverlapWord::Allow => Overlap::Allow,
            OverlapWord::Replace => Overlap::Replace,
        }
    }
}

impl From<Overlap> for OverlapWord {
    fn from(overlap: Overlap) -> OverlapWord {
        match overlap {
            Overlap::Skip => OverlapWord::Skip,
            Overlap::Wait => OverlapWord::Wait,
            Overlap::Allow => OverlapWord::Allow,
            Overlap::Replace => OverlapWord::Replace,
        }
    }
}

impl From<CatchupWord> for Catchup {
    fn from(word: CatchupWord) -> Catchup {
        match word {
            CatchupWord::One => Catchup::One,
            CatchupWord::All => Catchup::All,
        }
    }
}

impl From<Catchup> for CatchupWord {
    fn from(catchup: Catchup) -> CatchupWord {
        match catchup {
            Catchup::One => CatchupWord::One,
            Catchup::All => CatchupWord::All,
        }
    }
}

impl From<ScheduleConflictForm> for ScheduleConflict {
    fn from(form: ScheduleConflictForm) -> ScheduleConflict {
        match form {
            ScheduleConflictForm::Replace => ScheduleConflict::Replace,
            ScheduleConflictForm::Keep => ScheduleConflict::Keep,
            ScheduleConflictForm::Reject => ScheduleConflict::Reject,
        }
    }
}

impl ScheduleForm<'_> {
    /// The request of this form, which was read from `source`.
    pub(crate) fn into_put(
        self,
        topic: TopicName,
        name: ScheduleName,
        source: &Bytes,
    ) -> Result<PutSchedule, String> {
        let (body, body_kind) = body_of(self.body, self.text, self.base64, source)?;
        let headers = self.headers.filter(|headers| !headers.is_empty());
        let template = Template {
            body,
            body_kind,
            headers: headers.map(|headers| Arc::new(headers.into_iter().collect())),
            priority: self.priority,
            ttr_ms: self.ttr.map(|span| span.0),
            attempts_max: self.attempts_max,
            backoff: self.backoff.map(BackoffForm::into_backoff),
            expires_after_ms: self.expires_after.map(|span| span.0),
            group: self.group.map(Bytes::from),
        };
        Ok(PutSchedule {
            cron: self.cron,
            zone: self.zone,
            every_ms: self.every.map(|span| span.0),
            gap_ms: self.gap.map(|span| span.0),
            overlap: self.overlap.map(Overlap::from),
            catchup: self.catchup.map(Catchup::from),
            late_max_ms: self.late_max.map(|span| span.0),
            jitter_ms: self.jitter.map(|span| span.0),
            start_at_ms: self.start_at.map(|at| at.0),
            end_at_ms: self.end_at.map(|at| at.0),
            ticks_max: self.ticks_max,
            on_conflict: self.on_conflict.map(ScheduleConflict::from).unwrap_or_default(),
            if_version: self.if_version,
            ..PutSchedule::new(topic, name, template)
        })
    }
}

/// The result of a put of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScheduleCode {
    /// It is new.
    Created,
    /// It has the new definition.
    Replaced,
    /// It had this definition already.
    Unchanged,
    /// It stays as it is, though its definition is another.
    Duplicate,
}

/// The result of a put of a schedule.
#[derive(Serialize, ToSchema)]
#[schema(as = PutScheduleResult)]
pub(crate) struct PutScheduleOut<'a> {
    topic: &'a str,
    name: &'a str,
    pub(crate) code: ScheduleCode,
    /// Grows with each change of the definition.
    version: u64,
    /// The next tick; absent while it waits for a job or is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next_at: Option<At>,
    /// The rule in words.
    words: &'a str,
    /// What happens when clocks change in the coming year, and which months are passed over.
    notes: &'a [String],
}

impl<'a> PutScheduleOut<'a> {
    pub(crate) fn new(topic: &'a str, name: &'a str, reply: &'a PutScheduleReply) -> Self {
        PutScheduleOut {
            topic,
            name,
            code: match reply.outcome {
                ScheduleOutcome::Created => ScheduleCode::Created,
                ScheduleOutcome::Replaced => ScheduleCode::Replaced,
                ScheduleOutcome::Unchanged => ScheduleCode::Unchanged,
                ScheduleOutcome::Duplicate => ScheduleCode::Duplicate,
            },
            version: reply.version,
            next_at: reply.next_at.map(At),
            words: &reply.words,
            notes: &reply.notes,
        }
    }
}

/// What a schedule is doing.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ScheduleState)]
pub(crate) enum ScheduleStateWord {
    /// It waits for its next tick.
    Waiting,
    /// It gives no ticks for now.
    Paused,
    /// A tick waits for the job before, or passes because of it.
    Busy,
    /// Its zone is unknown here.
    Broken,
}

impl From<ScheduleState> for ScheduleStateWord {
    fn from(state: ScheduleState) -> ScheduleStateWord {
        match state {
            ScheduleState::Waiting => ScheduleStateWord::Waiting,
            ScheduleState::Paused => ScheduleStateWord::Paused,
            ScheduleState::Busy => ScheduleStateWord::Busy,
            ScheduleState::Broken => ScheduleStateWord::Broken,
        }
    }
}

/// The newest job of a schedule.
#[derive(Serialize, ToSchema)]
#[schema(as = LastTick)]
pub(crate) struct LastOut {
    id: IdOut,
    tick: At,
    put_at: At,
}

/// What became of the ticks that passed.
#[derive(Serialize, ToSchema)]
#[schema(as = TickCounts)]
pub(crate) struct TickCountsOut {
    /// Jobs were put for these.
    given: u64,
    /// They passed unseen, or too late.
    missed: u64,
    /// An earlier job was still alive.
    overlapped: u64,
    /// They were skipped by request, or passed during a pause.
    skipped: u64,
}

/// A schedule.
#[derive(Serialize, ToSchema)]
#[schema(as = Schedule)]
pub(crate) struct ScheduleOut<'a> {
    topic: &'a str,
    name: &'a str,
    version: u64,
    state: ScheduleStateWord,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cron: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    zone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    every_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    gap_ms: Option<u64>,
    overlap: OverlapWord,
    catchup: CatchupWord,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    late_max_ms: Option<u64>,
    jitter_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    start_at: Option<At>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    end_at: Option<At>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    ticks_max: Option<u64>,
    /// The rule in words.
    words: &'a str,
    created_at: At,
    /// The coming ticks; while it is busy they may pass.
    next: Vec<At>,
    /// The newest job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last: Option<LastOut>,
    counts: TickCountsOut,
    /// When a pause ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    paused_until: Option<At>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    priority: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    ttr_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    attempts_max: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    backoff: Option<BackoffOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_after_ms: Option<i64>,
    #[serde(flatten)]
    group: GroupOut<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>, nullable = false)]
    headers: Option<HeadersOut<'a>>,
    #[serde(flatten)]
    body: BodyOut<'a>,
}

impl<'a> From<&'a ScheduleView> for ScheduleOut<'a> {
    fn from(view: &'a ScheduleView) -> ScheduleOut<'a> {
        let definition = &view.definition;
        let (recurrence, template) = (&definition.recurrence, &definition.template);
        let (mut cron, mut zone, mut every_ms, mut gap_ms) = (None, None, None, None);
        match &recurrence.spec {
            RuleSpec::Cron { text, zone: name } => {
                (cron, zone) = (Some(text.as_str()), Some(name.as_str()));
            }
            RuleSpec::Every { span_ms } => every_ms = Some(*span_ms),
            RuleSpec::Gap { span_ms } => gap_ms = Some(*span_ms),
        }
        let TickCounts { given, missed, overlapped, skipped } = view.counts;
        let last = |last: LastJob| LastOut {
            id: IdOut(last.id),
            tick: At(last.tick_ms),
            put_at: At(last.put_at),
        };
        ScheduleOut {
            topic: view.topic.as_str(),
            name: view.name.as_str(),
            version: view.version,
            state: view.state.into(),
            cron,
            zone,
            every_ms,
            gap_ms,
            overlap: definition.overlap.into(),
            catchup: definition.catchup.into(),
            late_max_ms: definition.late_max_ms,
            jitter_ms: recurrence.jitter_ms,
            start_at: recurrence.start_at.map(At),
            end_at: recurrence.end_at.map(At),
            ticks_max: definition.ticks_max,
            words: &view.words,
            created_at: At(view.created_at),
            next: view.next.iter().copied().map(At).collect(),
            last: view.last.map(last),
            counts: TickCountsOut { given, missed, overlapped, skipped },
            paused_until: view.paused_until.map(At),
            priority: template.priority,
            ttr_ms: template.ttr_ms,
            attempts_max: template.attempts_max,
            backoff: template.backoff.as_deref().map(BackoffOut::from),
            expires_after_ms: template.expires_after_ms,
            group: GroupOut::new(template.group.as_ref()),
            headers: headers_out(template.headers.as_ref()),
            body: BodyOut::new(template.body_kind, &template.body),
        }
    }
}
