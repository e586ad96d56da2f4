//! run_schedule: jobs of a schedule by request, now or for ticks of the past. The schedule itself
//! goes on as if nothing had happened.

use std::sync::Arc;

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::job::{JobId, State, TickOrigin};
use crate::limits::{AT_MS_MAX, BACKFILL_TICKS_MAX};
use crate::machine::{Machine, Output, Rule};
use crate::op::{PutOutcome, PutReply, check};
use crate::schedule::{Schedule, ScheduleName};
use crate::tick;
use crate::time::{Clock, Now};
use crate::timeline::Timeline;
use crate::topic::TopicName;

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
        let from_ms = check::span("from", from_ms, 0, AT_MS_MAX)?;
        let to_ms = check::span("to", to_ms, 0, AT_MS_MAX)?;
        if matches!(rule, tick::Rule::Gap(_)) {
            let text = "a schedule with gap has no ticks of its own to give again: run it without \
                        from and to";
            return Err(Error::invalid(text));
        }
        let clock = schedule.definition.clock();
        let (from, to) = (now.instant_of(clock, from_ms), now.instant_of(clock, to_ms));
        let next = |tick_ms: &u64| rule.next(*tick_ms);
        let ticks = std::iter::successors(rule.next(from.saturating_sub(1)), next);
        let ticks = ticks.take_while(|tick_ms| *tick_ms < to).take(BACKFILL_TICKS_MAX + 1);
        let ticks: Vec<u64> = ticks.map(|tick_ms| schedule.to_wall(now, tick_ms)).collect();
        if ticks.len() > BACKFILL_TICKS_MAX {
            return Err(Error::invalid(format!(
                "there are more than {BACKFILL_TICKS_MAX} ticks from {from_ms} to {to_ms} ms; give \
                 a shorter time"
            )));
        }
        Ok(Some(ticks))
    }
}

operation! {
    RunSchedule => Vec<Result<PutReply, Error>>,
        request => Command::RunSchedule(request), Reply::Put(replies) => Ok(replies);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn run_schedule(
        &mut self,
        now: Now,
        run: &RunSchedule,
        out: &mut Output,
    ) -> Rule<Reply> {
        let (topic, entry) = self.locate_schedule(&run.topic, &run.name)?;
        let rule = entry.schedule.rule(&self.schedules.zones)?;
        let origins = match run.ticks(&entry.schedule, &rule, now)? {
            None => vec![None],
            Some(ticks) => {
                ticks.into_iter().map(|tick_ms| Some(origin(&run.name, tick_ms))).collect()
            }
        };
        let template = &entry.schedule.definition.template;
        let mut replies = Vec::with_capacity(origins.len());
        for origin in origins {
            let (put, due) = (template.put(run.topic.clone()), (Clock::Steady, now.steady_ms));
            let id = self.put_tick(now, topic, put, due, origin, out);
            replies.push(id.map(|id| created(id, now)));
        }
        Ok(Reply::Put(replies))
    }
}

fn origin(schedule: &ScheduleName, tick_ms: u64) -> Arc<TickOrigin> {
    Arc::new(TickOrigin { schedule: schedule.clone(), tick_ms, missed: 0 })
}

fn created(id: JobId, now: Now) -> PutReply {
    let (outcome, state) = (PutOutcome::Created, Some(State::Ready));
    PutReply { id, outcome, state, due_at: now.wall_ms }
}
