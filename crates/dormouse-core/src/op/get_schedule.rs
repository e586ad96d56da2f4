//! get_schedule: look at a schedule.

use jiff::tz::TimeZoneDatabase;

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::limits::{NEXT_TICKS, PREVIEW_TICKS_MAX};
use crate::machine::{Machine, Rule, ScheduleEntry};
use crate::refusal::no_schedule;
use crate::schedule::{Definition, LastJob, Parked, RuleSpec, Schedule, ScheduleName, TickCounts};
use crate::tick::{self, Every, RuleForm};
use crate::time::Now;
use crate::timeline::Timeline;
use crate::topic::{Pause, TopicName};

/// A schedule by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetSchedule {
    /// Its topic.
    pub topic: TopicName,
    /// Its name.
    pub name: ScheduleName,
}

/// The state of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleState {
    /// It waits for its next tick.
    Waiting,
    /// It gives no ticks for now.
    Paused,
    /// A tick waits for the job before, or passes because of it.
    Busy,
    /// Its rule cannot be read any more: the zone is unknown here.
    Broken,
}

impl ScheduleState {
    /// The word for it on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            ScheduleState::Waiting => "waiting",
            ScheduleState::Paused => "paused",
            ScheduleState::Busy => "busy",
            ScheduleState::Broken => "broken",
        }
    }
}

/// A schedule as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleView {
    /// Its topic.
    pub topic: TopicName,
    /// Its name.
    pub name: ScheduleName,
    /// As it was defined.
    pub definition: Definition,
    /// Grows with each change of the definition.
    pub version: u64,
    /// Its state.
    pub state: ScheduleState,
    /// When it was made, wall ms.
    pub created_at: u64,
    /// The instant that `every` is counted from, wall ms.
    pub anchor_at: u64,
    /// Its next ticks, wall ms; the first is not sure while it is busy.
    pub next: Vec<u64>,
    /// The newest job.
    pub last: Option<LastJob>,
    /// What became of the ticks that passed.
    pub counts: TickCounts,
    /// When a pause ends by itself, wall ms.
    pub paused_until: Option<u64>,
    /// The rule in words.
    pub words: String,
}

impl ScheduleView {
    /// The view of a schedule; its rule may be unreadable.
    pub fn of(
        topic: TopicName,
        name: ScheduleName,
        schedule: Schedule,
        rule: Option<&tick::Rule>,
        created_at: u64,
        now: Now,
    ) -> ScheduleView {
        let now_ms = now.on(schedule.definition.clock());
        let schedule = match rule {
            Some(rule) => schedule.accounted(rule, now_ms),
            None => schedule,
        };
        let progress = &schedule.progress;
        let pause = match progress.pause {
            Some(Pause::Until(end_ms)) if end_ms <= now_ms => None,
            pause => pause,
        };
        let state = match (rule, progress.parked, pause) {
            (None, _, _) => ScheduleState::Broken,
            (_, _, Some(_)) => ScheduleState::Paused,
            (_, Parked::Busy, _) => ScheduleState::Busy,
            _ => ScheduleState::Waiting,
        };
        let is_stopped = pause == Some(Pause::Open);
        let next = match rule {
            Some(rule) if !is_stopped => schedule.next_ticks(rule, NEXT_TICKS),
            _ => Vec::new(),
        };
        let next = next.into_iter().map(|tick_ms| schedule.to_wall(now, tick_ms)).collect();
        let paused_until = match pause {
            Some(Pause::Until(end_ms)) => Some(schedule.to_wall(now, end_ms)),
            _ => None,
        };
        ScheduleView {
            topic,
            name,
            version: schedule.version,
            state,
            created_at,
            anchor_at: schedule.to_wall(now, progress.anchor_ms),
            next,
            last: progress.last_job,
            counts: progress.counts,
            paused_until,
            words: rule.map(tick::Rule::words).unwrap_or_default(),
            definition: schedule.definition,
        }
    }
}

impl ScheduleView {
    /// Its ticks from one instant to before another, past or future, whatever becomes of them.
    pub fn ticks(
        &self,
        from_ms: u64,
        to_ms: u64,
        limit: usize,
        zones: &TimeZoneDatabase,
    ) -> Result<Vec<u64>, Error> {
        if !(1..=PREVIEW_TICKS_MAX).contains(&limit) {
            return Err(Error::invalid(format!("limit is {limit}; give 1 to {PREVIEW_TICKS_MAX}")));
        }
        let rule = match &self.definition.recurrence.spec {
            RuleSpec::Cron { text, zone } => {
                let (cron, zone) = (Some(text.as_str()), Some(zone.as_str()));
                tick::Rule::read(&RuleForm { cron, zone, ..RuleForm::default() }, 0, zones)?
            }
            RuleSpec::Every { span_ms } => {
                tick::Rule::Every(Every { anchor_ms: self.anchor_at, span_ms: *span_ms })
            }
            // Only the next one is known.
            RuleSpec::Gap { .. } => {
                let next = self.next.iter().copied().take(1);
                return Ok(next.filter(|tick_ms| (from_ms..to_ms).contains(tick_ms)).collect());
            }
        };
        let end_ms = self.definition.recurrence.end_at.unwrap_or(u64::MAX);
        // Without a start, the first comes one span after the anchor.
        let is_started = self.definition.recurrence.start_at.is_some();
        let first_ms = match &rule {
            tick::Rule::Every(every) if !is_started => every.anchor_ms.saturating_add(1),
            _ => 0,
        };
        let next = |tick_ms: &u64| rule.next(*tick_ms);
        let ticks = std::iter::successors(rule.next(from_ms.max(first_ms).saturating_sub(1)), next);
        Ok(ticks.take_while(|tick_ms| *tick_ms < to_ms && *tick_ms <= end_ms).take(limit).collect())
    }
}

operation! {
    GetSchedule => ScheduleView,
        request => Command::GetSchedule(request), Reply::Schedule(view) => Ok(*view);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn get_schedule(&mut self, now: Now, get: GetSchedule) -> Rule<Reply> {
        let (_, entry) = self.locate_schedule(&get.topic, &get.name)?;
        Ok(Reply::Schedule(Box::new(self.view_schedule(get.topic, entry, now))))
    }

    /// The schedule of this name, or `not_found`.
    pub(crate) fn locate_schedule(
        &mut self,
        topic: &TopicName,
        name: &ScheduleName,
    ) -> Rule<(crate::topic::TopicNo, ScheduleEntry)> {
        let missing = || no_schedule(topic, name);
        let topic = self.topics.find(topic).ok_or_else(missing)?;
        let entry = self.find_schedule(topic, name)?.ok_or_else(missing)?;
        Ok((topic, entry))
    }

    pub(crate) fn view_schedule(
        &self,
        topic: TopicName,
        entry: ScheduleEntry,
        now: Now,
    ) -> ScheduleView {
        let ScheduleEntry { name, schedule, created_at, .. } = entry;
        let rule = schedule.rule(&self.schedules.zones).ok();
        ScheduleView::of(topic, name, schedule, rule.as_ref(), created_at, now)
    }
}
