//! remove_schedule: a schedule goes; its jobs stay.

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::event::EventKind;
use dormouse_core::op::RemoveSchedule;

use super::Fanout;
use super::schedule_store::{ATTEMPTS_MAX, ScheduleWrite, Written, contended};

impl Fanout<'_> {
    pub(super) async fn remove_schedule(self, remove: &RemoveSchedule) -> Answer {
        for _ in 0..ATTEMPTS_MAX {
            let (partition, stored, _) = self.locate_schedule(&remove.topic, &remove.name).await?;
            let mut write = ScheduleWrite::removal(&stored);
            write.cancel = stored.newest().filter(|_| remove.cancel_job);
            if let Written::Done { confirmed, .. } = self.write_schedule(&partition, &write).await?
            {
                if confirmed {
                    self.emit_topic(&remove.topic, EventKind::Unscheduled);
                }
                let done = format!("schedule {} was removed", remove.name);
                return self.if_confirmed(confirmed, Reply::Done, done);
            }
        }
        Err(contended(&remove.name))
    }
}
