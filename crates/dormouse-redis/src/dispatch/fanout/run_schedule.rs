//! run_schedule: jobs of a schedule by request, now or for ticks of the past.

use std::sync::Arc;

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::job::TickOrigin;
use dormouse_core::limits::PORTION_BYTES;
use dormouse_core::op::{Put, PutReply, RunSchedule};

use super::Fanout;
use super::ticks::zones;
use crate::codec::put::OwnPut;
use crate::partition::{PartitionRequest, PerItem};

/// Jobs that one script puts.
const PORTION: usize = 32;

impl Fanout<'_> {
    pub(super) async fn run_schedule(self, run: &RunSchedule) -> Answer {
        let (partition, stored, now) = self.locate_schedule(&run.topic, &run.name).await?;
        let rule = stored.schedule.rule(zones())?;
        let schedule = || run.name.clone();
        let origin =
            |tick_ms| Some(Arc::new(TickOrigin { schedule: schedule(), tick_ms, missed: 0 }));
        let origins = match run.ticks(&stored.schedule, &rule, now)? {
            None => vec![None],
            Some(ticks) => ticks.into_iter().map(origin).collect(),
        };
        let template = stored.schedule.definition.template.put(run.topic.clone());
        // A delay of the topic is for callers.
        let put = Put { delay_ms: Some(0), ..template };
        let portion = usize::try_from(PORTION_BYTES / put.bytes().max(1)).unwrap_or(1);
        let job = |tick| OwnPut { tick, ..OwnPut::from(put.clone()) };
        let jobs: Vec<OwnPut> = origins.into_iter().map(job).collect();
        let mut replies = Vec::with_capacity(jobs.len());
        for jobs in jobs.chunks(portion.clamp(1, PORTION)) {
            let puts = jobs.to_vec();
            let request = |reply_to| PartitionRequest::OwnPut { puts, reply_to };
            let portion: PerItem<PutReply> = self.submit(&partition, request).await?;
            replies.extend(portion);
        }
        Ok(Reply::Put(replies))
    }
}
