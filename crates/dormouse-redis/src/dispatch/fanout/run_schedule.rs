//! run_schedule: jobs of a schedule by request, now or for ticks of the past.

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::event::EventKind;
use dormouse_core::job::TickOrigin;
use dormouse_core::limits::PORTION_BYTES;
use dormouse_core::op::{PutReply, RunSchedule};

use super::Fanout;
use super::ticks::{job_of, zones};
use crate::codec::put::{self, ScheduledJob};
use crate::events::EventDetails;
use crate::partition::{Effect, Partition, PerItem};
use crate::wire::{Op, Reader};

/// Jobs that one script puts.
const PORTION: usize = 32;

impl Fanout<'_> {
    pub(super) async fn run_schedule(self, run: &RunSchedule) -> Answer {
        let (partition, stored, now) = self.locate_schedule(&run.topic, &run.name).await?;
        let rule = stored.schedule.rule(zones())?;
        let origin = |tick_ms| Some(TickOrigin { schedule: run.name.clone(), tick_ms, missed: 0 });
        let origins = match run.ticks(&stored.schedule, &rule, now)? {
            None => vec![None],
            Some(ticks) => ticks.into_iter().map(origin).collect(),
        };
        let settings = partition.config.borrow().settings.clone();
        let job = |origin| job_of(&stored.schedule, &run.topic, &settings, origin, None);
        let jobs: Vec<ScheduledJob> = origins.into_iter().map(job).collect();
        let bytes = jobs.first().map_or(1, |job| job.content.bytes().max(1));
        let portion = usize::try_from(PORTION_BYTES / bytes).unwrap_or(1).clamp(1, PORTION);
        let mut replies = Vec::with_capacity(jobs.len());
        for jobs in jobs.chunks(portion) {
            replies.extend(self.put_scheduled(&partition, jobs).await?);
        }
        Ok(Reply::Put(replies))
    }

    async fn put_scheduled(
        self,
        partition: &Partition,
        jobs: &[ScheduledJob],
    ) -> Result<PerItem<PutReply>, Error> {
        let settings = partition.config.borrow().settings.clone();
        let args = put::scheduled_args(jobs.iter(), partition.limits(&settings));
        let priorities = jobs.iter().map(|job| job.priority).collect();
        let op = Op { priorities, ..Op::new("put", args) };
        let raw = self.submit_op(partition, Effect::Growth, op).await?;
        let Some(topic) = &partition.topic else { return Ok(Vec::new()) };
        let mut from = Reader::new(&raw.answer);
        let mut replies = Vec::with_capacity(jobs.len());
        for job in jobs {
            let reply = put::read(&mut from, topic, job.content.bytes(), &settings)?;
            if let Ok(PutReply { id, due_at, .. }) = reply
                && raw.confirmed
            {
                partition.note_number(id);
                let (kind, id, due_at) = (EventKind::Put, Some(id), Some(due_at));
                self.emit(topic, EventDetails { kind, id, due_at, attempt: 0 });
            }
            replies.push(reply.and_then(|reply| match raw.confirmed {
                true => Ok(reply),
                false => {
                    let done = format!("job {} was created", reply.id);
                    Err(self.dispatcher.shared.unconfirmed(&done, Some(reply.id)))
                }
            }));
        }
        Ok(replies)
    }
}
