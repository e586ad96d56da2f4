//! run_schedule: jobs of a schedule by request, now or for ticks of the past. The schedule itself
//! goes on as if nothing had happened.

use std::sync::Arc;

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::job::{JobId, State, TickOrigin};
use crate::limits::{BACKFILL_TICKS_MAX, PORTION_BYTES, PORTION_JOBS};
use crate::machine::{LongCommand, Machine, Output, Portion, Rule};
use crate::op::{Put, PutOutcome, PutReply, check};
use crate::schedule::{Schedule, ScheduleName};
use crate::tick;
use crate::time::{Clock, Now};
use crate::timeline::Timeline;
use crate::topic::{TopicName, TopicNo};

/// Put jobs of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSchedule {
    /// Its topic.
    pub topic: TopicName,
    /// Its name.
    pub name: ScheduleName,
    /// One job for each tick from the first of these instants to before the second, ms since the
    /// epoch; `None` = one job, for no tick.
    pub ticks: Option<(i64, i64)>,
}

impl RunSchedule {
    /// The ticks to give, wall ms; `None` = one job for none.
    pub fn ticks(
        &self,
        schedule: &Schedule,
        rule: &tick::Rule,
        now: Now,
    ) -> Result<Option<Vec<u64>>, Error> {
        let Some((from_ms, to_ms)) = self.ticks else { return Ok(None) };
        let from_ms = check::instant("from", from_ms)?;
        let to_ms = check::instant("to", to_ms)?;
        if matches!(rule, tick::Rule::Gap(_)) {
            let text = "a schedule with gap has no ticks of its own to give again: run it without \
                        from and to";
            return Err(Error::invalid(text));
        }
        let clock = schedule.definition.clock();
        if to_ms <= from_ms {
            let (from, to) = (check::rfc3339(from_ms), check::rfc3339(to_ms));
            let text = format!("to ({to}) must be later than from ({from})");
            return Err(Error::invalid(text));
        }
        if to_ms > now.wall_ms {
            let (to, now) = (check::rfc3339(to_ms), check::rfc3339(now.wall_ms));
            return Err(Error::invalid(format!(
                "to is {to}, which is later than now ({now}): ticks to come are given at their time"
            )));
        }
        let (mut from, to) = (now.instant_of(clock, from_ms), now.instant_of(clock, to_ms));
        if schedule.definition.recurrence.start_at.is_none() && clock == Clock::Steady {
            // Without a start, the first comes one span after the anchor.
            from = from.max(schedule.progress.anchor_ms.saturating_add(1));
        }
        let next = |tick_ms: &u64| rule.next(*tick_ms);
        let ticks = std::iter::successors(rule.next(from.saturating_sub(1)), next);
        let ticks = ticks.take_while(|tick_ms| *tick_ms < to).take(BACKFILL_TICKS_MAX + 1);
        let ticks: Vec<u64> = ticks.map(|tick_ms| schedule.to_wall(now, tick_ms)).collect();
        if ticks.len() > BACKFILL_TICKS_MAX {
            let (from, to) = (check::rfc3339(from_ms), check::rfc3339(to_ms));
            return Err(Error::invalid(format!(
                "there are more than {BACKFILL_TICKS_MAX} ticks from {from} to {to}; give a \
                 shorter time"
            )));
        }
        Ok(Some(ticks))
    }
}

operation! {
    RunSchedule => Vec<Result<PutReply, Error>>,
        request => Command::RunSchedule(request), Reply::Put(replies) => Ok(replies);
}

/// A run between two portions.
#[derive(Debug)]
pub(crate) struct RunProgress {
    topic: TopicNo,
    put: Put,
    /// Those that are still to be put for.
    origins: std::vec::IntoIter<Option<Arc<TickOrigin>>>,
    replies: Vec<Result<PutReply, Error>>,
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn run_schedule(&mut self, now: Now, run: &RunSchedule) -> Rule<LongCommand> {
        let (topic, entry) = self.locate_schedule(&run.topic, &run.name)?;
        let rule = entry.schedule.rule(&self.schedules.zones)?;
        let of_tick = |tick_ms| Some(origin(&run.name, tick_ms));
        let origins: Vec<_> = match run.ticks(&entry.schedule, &rule, now)? {
            None => vec![None],
            Some(ticks) => ticks.into_iter().map(of_tick).collect(),
        };
        let put = entry.schedule.definition.template.put(run.topic.clone());
        let replies = Vec::with_capacity(origins.len());
        let origins = origins.into_iter();
        Ok(LongCommand::RunSchedule(Box::new(RunProgress { topic, put, origins, replies })))
    }

    /// Puts some jobs. The topic may vanish meanwhile: then it is brought to life again.
    pub(crate) fn run_portion(
        &mut self,
        now: Now,
        mut progress: Box<RunProgress>,
        out: &mut Output,
    ) -> Rule<Portion> {
        let RunProgress { topic, put, origins, replies } = &mut *progress;
        *topic = self.topic_or_birth(&put.topic, out)?;
        let (mut jobs, mut bytes) = (0, 0);
        while jobs < PORTION_JOBS && bytes < PORTION_BYTES {
            let Some(origin) = origins.next() else {
                return Ok(Portion::Done(Reply::Put(progress.replies)));
            };
            (jobs, bytes) = (jobs + 1, bytes + put.bytes());
            let due = (Clock::Steady, now.steady_ms);
            let id = self.put_tick(now, *topic, put.clone(), due, origin, None, out);
            replies.push(id.map(|id| created(id, now)));
        }
        Ok(Portion::More(LongCommand::RunSchedule(progress)))
    }
}

fn origin(schedule: &ScheduleName, tick_ms: u64) -> Arc<TickOrigin> {
    Arc::new(TickOrigin { schedule: schedule.clone(), tick_ms, missed: 0 })
}

fn created(id: JobId, now: Now) -> PutReply {
    let (outcome, state) = (PutOutcome::Created, Some(State::Ready));
    PutReply { id, outcome, state, due_at: now.wall_ms }
}
