//! put_schedule: defines a schedule, or changes it.

use dormouse_core::backend::Answer;
use dormouse_core::error::{Code, Error};
use dormouse_core::event::EventKind;
use dormouse_core::limits::TOPIC_SCHEDULES_MAX;
use dormouse_core::op::{PutSchedule, PutScheduleReply, ScheduleOutcome};
use dormouse_core::refusal::schedule_never_ticks;
use dormouse_core::schedule::Rest;

use super::Fanout;
use super::schedule_store::{ATTEMPTS_MAX, ScheduleWrite, Written, contended, now_of};
use super::ticks::zones;
use crate::partition::registered_anew;

impl Fanout<'_> {
    pub(super) async fn put_schedule(self, put: &PutSchedule) -> Answer {
        let about = now_of(self.dispatcher.shared.clock.now_ms());
        let definition = put.definition(about, zones())?;
        let partitions = self.partition_count(&put.topic);
        if put.template.group.is_some() && partitions > 1 {
            return Err(no_group(partitions));
        }
        if self.dispatcher.known(&put.topic).is_none() {
            // What is refused must not create its topic.
            put.apply(None, definition, about, zones())?;
            self.dispatcher.find_or_create(&put.topic).await?;
        }
        let partition = self.schedule_partition(&put.topic, &put.name);
        let partition = partition.ok_or_else(registered_anew)?;
        for _ in 0..ATTEMPTS_MAX {
            let (stored, now) = self.settled_schedule(&partition, &put.name).await?;
            let definition = put.definition(now, zones())?;
            let existing = stored.as_ref().map(|stored| &stored.schedule);
            let (outcome, mut schedule) = put.apply(existing, definition, now, zones())?;
            let rule = schedule.rule(zones())?;
            let now_ms = now.on(schedule.definition.clock());
            let is_alive = stored.as_ref().is_some_and(|stored| stored.is_alive);
            let write = match (outcome, &stored) {
                (ScheduleOutcome::Unchanged | ScheduleOutcome::Duplicate, _) => None,
                (_, Some(stored)) => {
                    let rest = schedule.rest(&put.name, &rule, now_ms, is_alive);
                    Some(ScheduleWrite::of(stored, schedule.clone(), rest, now))
                }
                (_, None) => {
                    let rest = schedule.rest(&put.name, &rule, now_ms, false);
                    if rest == Rest::Ended {
                        return Err(schedule_never_ticks(&put.name));
                    }
                    // Before it is there, so that other servers find it whatever happens.
                    self.dispatcher.register_ticking(&put.topic).await?;
                    Some(ScheduleWrite::new(put.name.clone(), schedule.clone(), rest, now))
                }
            };
            let reply = PutScheduleReply::of(outcome, &schedule, &rule, now);
            let Some(write) = write else { return Ok(reply.into()) };
            match self.write_schedule(&partition, &write).await? {
                Written::Done { confirmed, .. } => {
                    if confirmed && outcome == ScheduleOutcome::Created {
                        self.emit_topic(&put.topic, EventKind::Scheduled);
                    }
                    let done = format!("schedule {} was {}", put.name, outcome.as_str());
                    return self.if_confirmed(confirmed, reply.into(), done);
                }
                Written::Stale => {}
                Written::TooMany => return Err(too_many(put)),
                Written::Refused(error) => return Err(error),
            }
        }
        Err(contended(&put.name))
    }
}

/// Jobs of a group belong to the partition of the group, those of a schedule to that of its name.
fn no_group(partitions: u64) -> Error {
    Error::invalid(format!(
        "group: a schedule puts its jobs into the partition of its name, those of a group rest in \
         that of the group, and the topic has {partitions} partitions; leave group out, or make \
         the topic with --redis-partitions 1"
    ))
}

fn too_many(put: &PutSchedule) -> Error {
    let text = format!(
        "topic {} has as many schedules as its part of Redis takes; the limit of a topic is \
         {TOPIC_SCHEDULES_MAX}; remove some",
        put.topic
    );
    Error::new(Code::Full, text)
}
