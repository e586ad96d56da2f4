//! get_schedule: looks at a schedule.

use std::rc::Rc;

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::op::{GetSchedule, ScheduleView};
use dormouse_core::refusal::no_schedule;
use dormouse_core::schedule::ScheduleName;
use dormouse_core::time::Now;
use dormouse_core::topic::TopicName;

use super::Fanout;
use super::schedule_store::StoredSchedule;
use super::ticks::zones;
use crate::partition::Partition;

impl Fanout<'_> {
    pub(super) async fn get_schedule(self, get: GetSchedule) -> Answer {
        let (_, stored, now) = self.locate_schedule(&get.topic, &get.name).await?;
        Ok(Reply::Schedule(Box::new(view(get.topic, stored, now))))
    }

    /// The schedule of this name, after it has done what was due; or `not_found`.
    pub(super) async fn locate_schedule(
        self,
        topic: &TopicName,
        name: &ScheduleName,
    ) -> Result<(Rc<Partition>, StoredSchedule, Now), Error> {
        let missing = || no_schedule(topic, name);
        let partition = self.schedule_partition(topic, name).ok_or_else(missing)?;
        let (stored, now) = self.settled_schedule(&partition, name).await?;
        Ok((partition, stored.ok_or_else(missing)?, now))
    }
}

pub(super) fn view(topic: TopicName, stored: StoredSchedule, now: Now) -> ScheduleView {
    let StoredSchedule { name, schedule, created_at, .. } = stored;
    let rule = schedule.rule(zones()).ok();
    ScheduleView::of(topic, name, schedule, rule.as_ref(), created_at, now)
}
