//! A schedule: a rule, the job that each of its ticks puts, and how far it has come. Pure, as ticks
//! are: a backend brings the time, and says whether the last job still lives.
//!
//! Every tick is accounted for exactly once. At any time `given + missed + overlapped + skipped` is
//! the number of ticks up to `TickProgress::last_ms` since the schedule began.

mod codec;
mod name;
mod plan;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use jiff::tz::TimeZoneDatabase;

pub use name::ScheduleName;
pub use plan::{Plan, Rest, TickPut};

use crate::backoff::Backoff;
use crate::error::Error;
use crate::job::{BodyKind, JobId};
use crate::op::Put;
use crate::tick::{Every, Rule, RuleForm};
use crate::time::{Clock, Now};
use crate::topic::{Pause, TopicName};

/// When a schedule ticks, as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleSpec {
    /// By the calendar of a zone.
    Cron {
        /// 5 or 6 fields.
        text: String,
        /// The name of the zone.
        zone: String,
    },
    /// At equal distances.
    Every {
        /// The span between two ticks.
        span_ms: u64,
    },
    /// After the end of the job before.
    Gap {
        /// The span from that end to the next tick.
        span_ms: u64,
    },
}

/// All that decides when a schedule puts jobs. As long as it stays the same, a change of the rest
/// moves no tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurrence {
    /// The rule.
    pub spec: RuleSpec,
    /// A job is due up to so much after its tick.
    pub jitter_ms: u64,
    /// No tick before this, wall ms; `every` is counted from it.
    pub start_at: Option<u64>,
    /// No tick after this, wall ms.
    pub end_at: Option<u64>,
}

/// The job that each tick puts; what is missing is the topic's default at that time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// The work.
    pub body: Bytes,
    /// The form of the body.
    pub body_kind: BodyKind,
    /// Small string map.
    pub headers: Option<Arc<Vec<(String, String)>>>,
    /// Lower is first.
    pub priority: Option<u32>,
    /// Lease time.
    pub ttr_ms: Option<i64>,
    /// Attempts before dead; 0 = no limit.
    pub attempts_max: Option<u32>,
    /// Wait after a failed attempt.
    pub backoff: Option<Arc<Backoff>>,
    /// A job dies if nobody takes it so long after it was due; 0 = it never does.
    pub expires_after_ms: Option<i64>,
    /// What limits of groups are counted by.
    pub group: Option<Bytes>,
}

impl Template {
    /// The put of one tick.
    pub fn put(&self, topic: TopicName) -> Put {
        Put {
            body_kind: self.body_kind,
            headers: self.headers.clone(),
            priority: self.priority,
            ttr_ms: self.ttr_ms,
            attempts_max: self.attempts_max,
            backoff: self.backoff.clone(),
            expires_after_ms: self.expires_after_ms,
            group: self.group.clone(),
            ..Put::new(topic, self.body.clone())
        }
    }
}

/// A tick while the job of an earlier one still lives: waiting, leased or between two attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// Ticks pass until that job has ended.
    #[default]
    Skip,
    /// The latest tick is given once that job has ended.
    Wait,
    /// Jobs may live beside each other.
    Allow,
    /// That job is cancelled.
    Replace,
}

impl Overlap {
    /// Every way, in the order of the enum.
    pub const ALL: [Overlap; 4] = [Overlap::Skip, Overlap::Wait, Overlap::Allow, Overlap::Replace];

    /// The word for it on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Overlap::Skip => "skip",
            Overlap::Wait => "wait",
            Overlap::Allow => "allow",
            Overlap::Replace => "replace",
        }
    }
}

/// Ticks that passed unseen: nothing ran, or the topic was full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Catchup {
    /// The latest is given.
    #[default]
    One,
    /// Each is given, in order.
    All,
}

impl Catchup {
    /// Every way, in the order of the enum.
    pub const ALL: [Catchup; 2] = [Catchup::One, Catchup::All];

    /// The word for it on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Catchup::One => "one",
            Catchup::All => "all",
        }
    }
}

/// A schedule as a user defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// When it ticks.
    pub recurrence: Recurrence,
    /// The job of a tick.
    pub template: Template,
    /// A tick while an earlier job lives.
    pub overlap: Overlap,
    /// Ticks that passed unseen.
    pub catchup: Catchup,
    /// A tick that is later than this is missed.
    pub late_max_ms: Option<u64>,
    /// The schedule ends after so many jobs.
    pub ticks_max: Option<u64>,
}

impl Definition {
    /// The clock that its instants are measured by.
    pub fn clock(&self) -> Clock {
        match self.recurrence.spec {
            RuleSpec::Cron { .. } => Clock::Wall,
            RuleSpec::Every { .. } | RuleSpec::Gap { .. } => Clock::Steady,
        }
    }

    fn is_gap(&self) -> bool {
        matches!(self.recurrence.spec, RuleSpec::Gap { .. })
    }
}

/// What became of the ticks that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickCounts {
    /// Jobs were put for these.
    pub given: u64,
    /// They passed unseen, or too late.
    pub missed: u64,
    /// An earlier job was still alive.
    pub overlapped: u64,
    /// They were skipped by request, or passed during a pause.
    pub skipped: u64,
}

impl TickCounts {
    /// What has passed since these were counted; nothing where a new count has begun.
    pub(crate) fn since(&self, before: &TickCounts) -> TickCounts {
        TickCounts {
            given: self.given.saturating_sub(before.given),
            missed: self.missed.saturating_sub(before.missed),
            overlapped: self.overlapped.saturating_sub(before.overlapped),
            skipped: self.skipped.saturating_sub(before.skipped),
        }
    }

    pub(crate) fn add(&mut self, more: &TickCounts) {
        self.given += more.given;
        self.missed += more.missed;
        self.overlapped += more.overlapped;
        self.skipped += more.skipped;
    }

    /// All ticks that passed.
    pub fn total(&self) -> u64 {
        self.given + self.without_job()
    }

    /// Those that got no job.
    pub fn without_job(&self) -> u64 {
        self.missed + self.overlapped + self.skipped
    }
}

/// The newest job of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastJob {
    /// The job.
    pub id: JobId,
    /// Its tick, wall ms.
    pub tick_ms: u64,
    /// When it was put, wall ms.
    pub put_at: u64,
}

/// Why a schedule rests where no tick reaches it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parked {
    /// It does not.
    #[default]
    No,
    /// Until its last job has ended.
    Busy,
    /// Until it is resumed.
    Paused,
    /// Until its zone can be read.
    Broken,
}

/// How far a schedule has come. Instants are on the clock of its rule unless it says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TickProgress {
    /// The instant that `every` is counted from.
    pub anchor_ms: u64,
    /// No tick after this.
    pub end_ms: Option<u64>,
    /// Ticks up to this instant are accounted for.
    pub last_ms: u64,
    /// What became of them.
    pub counts: TickCounts,
    /// How many of them had got no job when the newest one was put.
    pub without_job: u64,
    /// The newest job.
    pub last_job: Option<LastJob>,
    /// No ticks until then.
    pub pause: Option<Pause>,
    /// Whether, and why, it is parked.
    pub parked: Parked,
}

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// As it was defined.
    pub definition: Definition,
    /// Grows with each change of the definition.
    pub version: u64,
    /// How far it has come.
    pub progress: TickProgress,
}

impl Schedule {
    /// A schedule that begins now.
    pub fn new(definition: Definition, now: Now) -> Schedule {
        let progress = begin(&definition, now);
        Schedule { definition, version: 1, progress }
    }

    /// Gives it a new definition. Ticks that were still to be given stay, unless the recurrence
    /// changes: then they are missed, and it begins anew.
    pub fn redefine(&mut self, definition: Definition, rule: Option<&Rule>, now: Now) {
        if definition.recurrence != self.definition.recurrence {
            let now_ms = now.on(self.definition.clock());
            let missed = rule.map_or(0, |rule| self.count_until(rule, now_ms));
            self.progress.counts.missed += missed;
            let TickProgress { counts, without_job, last_job, pause, .. } = self.progress;
            let began = begin(&definition, now);
            // The end of a pause on another clock.
            let (old, new) = (self.definition.clock(), definition.clock());
            let pause = pause.map(|pause| match pause {
                Pause::Until(at) => Pause::Until(now.instant_of(new, now.to_wall(old, at))),
                Pause::Open => Pause::Open,
            });
            self.progress = TickProgress { counts, without_job, last_job, pause, ..began };
        }
        self.definition = definition;
        self.version += 1;
    }

    /// The rule, read anew: zones may have changed.
    pub fn rule(&self, zones: &TimeZoneDatabase) -> Result<Rule, Error> {
        match &self.definition.recurrence.spec {
            RuleSpec::Cron { text, zone } => {
                let (cron, zone) = (Some(text.as_str()), Some(zone.as_str()));
                Rule::read(&RuleForm { cron, zone, ..RuleForm::default() }, 0, zones)
            }
            RuleSpec::Every { span_ms } => {
                let anchor_ms = self.progress.anchor_ms;
                Ok(Rule::Every(Every { anchor_ms, span_ms: *span_ms }))
            }
            RuleSpec::Gap { span_ms } => Ok(Rule::Gap(*span_ms)),
        }
    }

    /// An instant of its clock on the calendar, ms.
    pub fn to_wall(&self, now: Now, ms: u64) -> u64 {
        now.to_wall(self.definition.clock(), ms)
    }

    /// Its next tick, wall ms; `None` while it waits for a job, is paused, or has none.
    pub fn next_at(&self, rule: &Rule, now: Now) -> Option<u64> {
        let is_parked = self.progress.parked != Parked::No;
        let next_ms = if is_parked { None } else { self.next_tick(rule) };
        next_ms.map(|tick_ms| self.to_wall(now, tick_ms))
    }

    /// The record of it for a store.
    pub fn encode(&self) -> Bytes {
        codec::encode(self)
    }

    /// Reads what [`Schedule::encode`] wrote.
    pub fn decode(record: &Bytes) -> Option<Schedule> {
        codec::decode(record)
    }
}

/// The progress of a schedule that begins now: the first tick comes after now, or at `start_at`.
fn begin(definition: &Definition, now: Now) -> TickProgress {
    let Recurrence { spec, start_at, end_at, .. } = &definition.recurrence;
    let clock = definition.clock();
    let on_clock = |wall_ms: u64| now.instant_of(clock, wall_ms);
    // A begun millisecond counts, as it does for a delay.
    let now_ms = match clock {
        Clock::Wall => now.wall_ms,
        Clock::Steady => now.after(1).saturating_sub(1),
    };
    let anchor_ms = start_at.map_or(now_ms, on_clock);
    let first_after_ms = match (spec, start_at) {
        (_, None) => now_ms,
        // So that the first tick is the start itself.
        (RuleSpec::Gap { span_ms }, Some(_)) => anchor_ms.max(now_ms).saturating_sub(*span_ms),
        (_, Some(_)) => now_ms.max(anchor_ms.saturating_sub(1)),
    };
    TickProgress {
        anchor_ms,
        end_ms: end_at.map(on_clock),
        last_ms: first_after_ms,
        ..TickProgress::default()
    }
}
