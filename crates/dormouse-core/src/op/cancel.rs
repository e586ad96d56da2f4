//! cancel: remove a job, by id or key, and say exactly what happened.

use bytes::Bytes;

use crate::command::{Command, Reply, only, operation};
use crate::error::Error;
use crate::fact::{Cause, Destination, Fact};
use crate::job::{JobId, State};
use crate::machine::{
    BatchProgress, JobLocation, LongCommand, Machine, Origin, Output, Portion, PortionBudget, Rule,
};
use crate::refusal::cancel_leased;
use crate::time::Now;
use crate::timeline::Timeline;
use crate::topic::TopicName;

/// A job by its number or by its producer's own id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// By number.
    Id(JobId),
    /// By key.
    Key {
        /// The topic in which the key is unique.
        topic: TopicName,
        /// The key.
        key: Bytes,
    },
}

/// Remove a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// The job.
    pub target: Target,
    /// Answer `conflict` instead of revoking a lease.
    pub unless_leased: bool,
}

/// A job that was cancelled, moved or revived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeReply {
    /// The job.
    pub id: JobId,
    /// The state it was in before.
    pub was: State,
    /// When it is due now, wall ms; of a cancelled job, when it would have been.
    pub due_at: u64,
}

operation! {
    Vec<Cancel> => Vec<Result<ChangeReply, Error>>,
        items => Command::Cancel(items), Reply::Changed(replies) => Ok(replies);
    Cancel => ChangeReply,
        item => Command::Cancel(vec![item]), Reply::Changed(replies) => only(replies);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn cancel_portion(
        &mut self,
        now: Now,
        mut batch: BatchProgress<Cancel, ChangeReply>,
        out: &mut Output,
    ) -> Rule<Portion> {
        self.batch_portion(&mut batch, |machine, cancel, budget| {
            machine.cancel_one(now, &cancel, budget, out)
        })?;
        Ok(batch.into_portion(Reply::Changed, LongCommand::Cancel))
    }

    pub(crate) fn cancel_one(
        &mut self,
        now: Now,
        cancel: &Cancel,
        budget: &mut PortionBudget,
        out: &mut Output,
    ) -> Rule<ChangeReply> {
        let (changed, topic, left, progress, origin) = match self.locate(now, &cancel.target)? {
            JobLocation::Leased(id) if cancel.unless_leased => return Err(cancel_leased(id).into()),
            JobLocation::Leased(id) => {
                let due_at = self.lease_end_wall_ms(id, now);
                let (topic, progress) = self
                    .leases
                    .get(id)
                    .map(|lease| (lease.topic, lease.job.progress()))
                    .unwrap_or_default();
                let changed = ChangeReply { id, was: State::Leased, due_at };
                (changed, topic, None, progress, Origin::Live)
            }
            JobLocation::Resting(resting) => {
                budget.take(&resting.job);
                let (id, place) = (resting.job.id, resting.place);
                let (was, due_at) = (place.state(now), place.due_wall_ms(now));
                let progress = resting.job.progress.clone();
                let changed = ChangeReply { id, was, due_at };
                (changed, place.topic, Some(place), progress, Origin::Found(resting))
            }
        };
        let (id, to, cause) = (changed.id, Destination::Gone, Cause::Cancel);
        self.commit(Fact::Move { id, topic, left, to, progress, key: None, cause }, origin, out);
        Ok(changed)
    }
}
