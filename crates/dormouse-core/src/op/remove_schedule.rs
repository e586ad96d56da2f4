//! remove_schedule: a schedule goes; its jobs stay.

use crate::command::{Command, Reply, operation};
use crate::machine::{Machine, Output, Rule};
use crate::schedule::ScheduleName;
use crate::time::Now;
use crate::timeline::Timeline;
use crate::topic::TopicName;

/// Remove a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveSchedule {
    /// Its topic.
    pub topic: TopicName,
    /// Its name.
    pub name: ScheduleName,
    /// Its newest job is cancelled if it still lives.
    pub cancel_job: bool,
}

operation! {
    RemoveSchedule => (),
        request => Command::RemoveSchedule(request), Reply::Done => Ok(());
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn remove_schedule(
        &mut self,
        now: Now,
        remove: &RemoveSchedule,
        out: &mut Output,
    ) -> Rule<Reply> {
        let (_, entry) = self.locate_schedule(&remove.topic, &remove.name)?;
        if remove.cancel_job
            && let Some(last) = entry.schedule.progress.last_job
        {
            self.cancel_tick_job(last.id, now, out)?;
        }
        self.remove_schedule_entry(&entry, out);
        Ok(Reply::Done)
    }
}
