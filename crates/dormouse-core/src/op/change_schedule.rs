//! change_schedule: pause, resume, skip and replan change when a schedule ticks next, not its
//! definition.

use crate::command::{Command, Reply, operation};
use crate::error::{Code, Error};
use crate::limits::TTL_MS_MAX;
use crate::machine::{Machine, Output, Rule};
use crate::op::{ScheduleView, check};
use crate::schedule::{Schedule, ScheduleName};
use crate::tick;
use crate::time::{Clock, Now};
use crate::timeline::Timeline;
use crate::topic::{Pause, TopicName};

/// The change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleChange {
    /// No ticks, and none of them later.
    Pause {
        /// For so long; `None` = until resumed.
        for_ms: Option<i64>,
    },
    /// Undo a pause.
    Resume,
    /// The next tick is left out.
    Skip,
    /// The next tick is the first after now, whatever was still to be given.
    Replan,
}

/// Change when a schedule ticks next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSchedule {
    /// Its topic.
    pub topic: TopicName,
    /// Its name.
    pub name: ScheduleName,
    /// The change.
    pub change: ScheduleChange,
}

impl ChangeSchedule {
    /// Changes a schedule; it has to be planned then.
    pub fn apply(&self, schedule: &mut Schedule, rule: &tick::Rule, now: Now) -> Result<(), Error> {
        let clock = schedule.definition.clock();
        let now_ms = now.on(clock);
        match self.change {
            ScheduleChange::Pause { for_ms: None } => schedule.pause(Pause::Open, rule, now_ms),
            ScheduleChange::Pause { for_ms: Some(ms) } => {
                let for_ms = check::span("pause", ms, 0, TTL_MS_MAX)?;
                let end_ms = match clock {
                    Clock::Steady => now.after(for_ms),
                    Clock::Wall => now_ms.saturating_add(for_ms),
                };
                schedule.pause(Pause::Until(end_ms), rule, now_ms);
            }
            ScheduleChange::Resume => schedule.resume(rule, now_ms),
            ScheduleChange::Skip => {
                schedule.skip(rule, now_ms).ok_or_else(|| nothing_to_skip(&self.name))?;
            }
            ScheduleChange::Replan => schedule.replan(rule, now_ms),
        }
        Ok(())
    }
}

fn nothing_to_skip(name: &ScheduleName) -> Error {
    let text = format!("schedule {name} has no further tick to skip; it ends with its last job");
    Error::new(Code::Conflict, text)
}

operation! {
    ChangeSchedule => ScheduleView,
        request => Command::ChangeSchedule(request), Reply::Schedule(view) => Ok(*view);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn change_schedule(
        &mut self,
        now: Now,
        change: ChangeSchedule,
        out: &mut Output,
    ) -> Rule<Reply> {
        let (topic, mut entry) = self.locate_schedule(&change.topic, &change.name)?;
        let rule = entry.schedule.rule(&self.schedules.zones)?;
        let mut schedule = entry.schedule.clone();
        change.apply(&mut schedule, &rule, now)?;
        if schedule != entry.schedule {
            self.redefine_schedule(topic, &mut entry, schedule, now, out)?;
        }
        let view = self.view_schedule(change.topic, entry, now);
        Ok(Reply::Schedule(Box::new(view)))
    }
}
