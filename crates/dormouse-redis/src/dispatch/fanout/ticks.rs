//! Gives ticks: reads the entries that are due, plans each with the rules of the core, and writes
//! what comes out. Other servers may do the same at the same time: one of them is first.

use std::rc::Rc;
use std::sync::Arc;

use dormouse_core::error::Error;
use dormouse_core::event::EventKind;
use dormouse_core::job::{Content, JobId, TickOrigin};
use dormouse_core::limits::{PRIORITY_DEFAULT, SCHEDULE_RETRY_MS_MIN};
use dormouse_core::schedule::{
    LastJob, Overlap, Parked, Plan, Rest, Schedule, ScheduleName, TickPut,
};
use dormouse_core::time::Now;
use dormouse_core::topic::{Settings, TopicName};
use jiff::tz::TimeZoneDatabase;

use super::Fanout;
use super::schedule_store::{ATTEMPTS_MAX, ScheduleWrite, StoredSchedule, Written, now_of};
use crate::clock::ANY_TIME;
use crate::codec::put::ScheduledJob;
use crate::events::EventDetails;
use crate::partition::{Effect, Partition};
use crate::scheduler::TicksReport;
use crate::wire::codes::NEVER;
use crate::wire::{Op, Reader, malformed, number};

/// Entries of one portion.
const PORTION: u64 = 32;

/// The zones that rules are read with.
pub(super) fn zones() -> &'static TimeZoneDatabase {
    jiff::tz::db()
}

/// What a schedule has to do: at most one tick.
struct Step {
    tick: Option<TickPut>,
    /// What it becomes; the id of the job of the tick is not known yet.
    schedule: Schedule,
    rest: Rest,
}

fn step(stored: &StoredSchedule, now: Now) -> Step {
    let (before, name) = (&stored.schedule, &stored.name);
    let mut schedule = before.clone();
    let Ok(rule) = before.rule(zones()) else {
        schedule.progress.parked = Parked::Broken;
        return Step { tick: None, schedule, rest: Rest::Parked };
    };
    let now_ms = now.on(before.definition.clock());
    let was_busy = before.progress.parked == Parked::Busy;
    // Of one that waited for its job, the score is when that ended: ticks after it are as usual.
    let at_ms = if was_busy { stored.score.min(now_ms) } else { now_ms };
    let plan = schedule.plan(name, &rule, at_ms, stored.is_alive);
    if let Plan::Give(tick) = plan {
        let tick_ms = now.to_wall(before.definition.clock(), tick.tick_ms);
        schedule.progress.last_job = Some(LastJob { id: JobId(0), tick_ms, put_at: now.wall_ms });
        let rest = schedule.rest(name, &rule, now_ms, true);
        return Step { tick: Some(tick), schedule, rest };
    }
    schedule = before.clone();
    if plan == Plan::Park && was_busy && stored.is_alive {
        // Another job has ended than the one it waits for: nothing is accounted for yet.
        return Step { tick: None, schedule, rest: Rest::Parked };
    }
    let rest = schedule.rest(name, &rule, at_ms, stored.is_alive);
    Step { tick: None, schedule, rest }
}

/// The job that a schedule puts.
fn job_of(
    schedule: &Schedule,
    topic: &TopicName,
    settings: &Settings,
    tick: Option<TickOrigin>,
    due_at: Option<u64>,
) -> ScheduledJob {
    let template = &schedule.definition.template;
    let put = template.put(topic.clone());
    let content = Content { tick: tick.map(Arc::new), ..put.content(Some(settings), ANY_TIME) };
    ScheduledJob { content, priority: template.priority.unwrap_or(PRIORITY_DEFAULT), due_at }
}

/// The change that a step is.
fn write_of(stored: &StoredSchedule, step: Step, partition: &Partition, now: Now) -> ScheduleWrite {
    let clock = stored.schedule.definition.clock();
    let mut write = ScheduleWrite::of(stored, step.schedule, step.rest, now);
    if let (Some(tick), Some(topic)) = (step.tick, &partition.topic) {
        let tick_ms = now.to_wall(clock, tick.tick_ms);
        let schedule = stored.name.clone();
        let origin = TickOrigin { schedule, tick_ms, missed: tick.missed };
        let (settings, due_at) = (&partition.config.borrow().settings, Some(tick.due_ms));
        write.job = Some(job_of(&stored.schedule, topic, settings, Some(origin), due_at));
        let replaces = stored.schedule.definition.overlap == Overlap::Replace;
        write.cancel = stored.newest().filter(|_| replaces);
    }
    write
}

/// What became of a step.
enum Stepped {
    Done,
    Stale,
    Refused,
}

impl Fanout<'_> {
    /// Gives a portion of the ticks of a partition, and looks after all else that happens by
    /// itself.
    pub(crate) async fn give_ticks(self, partition: &Rc<Partition>) -> Result<TicksReport, Error> {
        let op = Op::new("ticks", vec![number(PORTION)]);
        let raw = self.submit_op(partition, Effect::Read, op).await?;
        let (mut from, now) = (Reader::new(&raw.answer), now_of(raw.now_ms));
        let (is_watched, next_at, letters) = (from.u8()? == 1, from.u48()?, from.u64()?);
        let mut report = TicksReport {
            is_watched,
            next_at: Some(next_at).filter(|&at_ms| at_ms < NEVER),
            is_refused: false,
        };
        let mut pending = Vec::new();
        while !from.is_empty() {
            let stored = StoredSchedule::read(&mut from)?;
            pending.push(self.take_step(partition, stored, now));
        }
        let mut failed = None;
        for stepped in pending {
            match stepped.await {
                Ok(Stepped::Done) => {}
                Ok(Stepped::Stale) => report.next_at = Some(0),
                Ok(Stepped::Refused) => {
                    report.is_refused = true;
                    report.next_at = Some(0);
                }
                // The others may have given their ticks.
                Err(error) => failed = Some(error),
            }
        }
        // Letters come after the ticks, and a portion at a time: there may be millions.
        if letters > 0 && self.send_some_letters(partition).await? {
            report.next_at = Some(0);
        }
        failed.map_or(Ok(report), Err)
    }

    /// Submits a step of a schedule now, and returns a future of what becomes of it.
    fn take_step(
        self,
        partition: &Rc<Partition>,
        stored: StoredSchedule,
        now: Now,
    ) -> impl Future<Output = Result<Stepped, Error>> {
        let step = step(&stored, now);
        let tick = step.tick;
        let write = write_of(&stored, step, partition, now);
        let written = self.write_schedule(partition, &write);
        let partition = Rc::clone(partition);
        async move {
            match written.await? {
                Written::Done { newest, due_at, confirmed } => {
                    if let (Some(tick), Some(topic), true) = (tick, &partition.topic, confirmed) {
                        let (id, due_at) = (Some(newest), Some(due_at));
                        let missed = (tick.missed > 0).then_some(EventKind::TickMissed);
                        for kind in [EventKind::Put, EventKind::Tick].into_iter().chain(missed) {
                            self.emit(topic, EventDetails { kind, id, due_at, attempt: 0 });
                        }
                    }
                    Ok(Stepped::Done)
                }
                Written::Stale => Ok(Stepped::Stale),
                Written::Refused(_) => self.put_off_tick(&partition, &stored, now).await,
                Written::TooMany => Err(malformed("a schedule that is there is too many")),
            }
        }
    }

    /// The topic is full: the tick is still to be given. It is tried again later, so that it holds
    /// up no other; unless that cannot be written, either.
    async fn put_off_tick(
        self,
        partition: &Rc<Partition>,
        stored: &StoredSchedule,
        now: Now,
    ) -> Result<Stepped, Error> {
        let mut schedule = stored.schedule.clone();
        schedule.progress.parked = Parked::No;
        let now_ms = now.on(schedule.definition.clock());
        let rule = schedule.rule(zones()).ok();
        let retry_ms = rule.map_or(SCHEDULE_RETRY_MS_MIN, |rule| schedule.retry_ms(&rule, now_ms));
        let rest = Rest::Until(now_ms.saturating_add(retry_ms));
        let write = ScheduleWrite::of(stored, schedule, rest, now);
        Ok(match self.write_schedule(partition, &write).await? {
            Written::Done { .. } => Stepped::Done,
            Written::Stale => Stepped::Stale,
            Written::Refused(_) | Written::TooMany => Stepped::Refused,
        })
    }

    /// The schedule of this name, after it has done what was due, and the present.
    pub(super) async fn settled_schedule(
        self,
        partition: &Rc<Partition>,
        name: &ScheduleName,
    ) -> Result<(Option<StoredSchedule>, Now), Error> {
        for _ in 0..ATTEMPTS_MAX {
            let (stored, now) = self.read_schedule(partition, name).await?;
            match stored {
                Some(stored) if stored.is_due(now) => {
                    let stepped = self.take_step(partition, stored, now).await?;
                    if matches!(stepped, Stepped::Refused) {
                        break;
                    }
                }
                stored => return Ok((stored, now)),
            }
        }
        // The rest of many ticks is given by and by.
        self.read_schedule(partition, name).await
    }
}
