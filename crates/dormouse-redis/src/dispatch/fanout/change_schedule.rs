//! change_schedule: pause, resume, skip and replan.

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::op::ChangeSchedule;

use super::Fanout;
use super::get_schedule::view;
use super::schedule_store::{ATTEMPTS_MAX, ScheduleWrite, Written, contended};
use super::ticks::zones;

impl Fanout<'_> {
    pub(super) async fn change_schedule(self, change: ChangeSchedule) -> Answer {
        for _ in 0..ATTEMPTS_MAX {
            let (partition, mut stored, now) =
                self.locate_schedule(&change.topic, &change.name).await?;
            let rule = stored.schedule.rule(zones())?;
            let mut schedule = stored.schedule.clone();
            change.apply(&mut schedule, &rule, now)?;
            if schedule == stored.schedule {
                let view = view(change.topic, stored, now);
                return Ok(Reply::Schedule(Box::new(view)));
            }
            let now_ms = now.on(schedule.definition.clock());
            let rest = schedule.rest(&stored.name, &rule, now_ms, stored.is_alive);
            let write = ScheduleWrite::of(&stored, schedule.clone(), rest, now);
            match self.write_schedule(&partition, &write).await? {
                Written::Done { confirmed, .. } => {
                    let done = format!("schedule {} was changed", change.name);
                    stored.schedule = schedule;
                    let view = view(change.topic, stored, now);
                    return self.if_confirmed(confirmed, Reply::Schedule(Box::new(view)), done);
                }
                Written::Refused(error) => return Err(error),
                Written::Stale | Written::TooMany => {}
            }
        }
        Err(contended(&change.name))
    }
}
