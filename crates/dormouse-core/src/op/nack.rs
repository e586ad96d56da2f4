//! nack: the attempt failed; the job waits for its backoff, or is dead if that was the last.

use bytes::Bytes;

use crate::backoff::Backoff;
use crate::command::{Command, Reply, only, operation};
use crate::error::Error;
use crate::fact::{Cause, Destination};
use crate::job::{Job, Token};
use crate::machine::{
    BatchProgress, LongCommand, Machine, Output, Portion, PortionBudget, Rule, bury,
};
use crate::op::ack::Ending;
use crate::op::{EndReply, check};
use crate::place::{Class, Place};
use crate::time::{Clock, Now};
use crate::timeline::Timeline;
use crate::topic::TopicNo;

/// Give back after a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nack {
    /// Proof of the lease.
    pub token: Token,
    /// The delay instead of the backoff's.
    pub delay_ms: Option<i64>,
    /// From now on this priority.
    pub priority: Option<u32>,
    /// The error text, kept with the job.
    pub error: Option<Bytes>,
}

operation! {
    Vec<Nack> => Vec<Result<EndReply, Error>>,
        items => Command::Nack(items), Reply::Ended(replies) => Ok(replies);
    Nack => EndReply,
        item => Command::Nack(vec![item]), Reply::Ended(replies) => only(replies);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn nack_portion(
        &mut self,
        now: Now,
        batch: BatchProgress<Nack, EndReply>,
        out: &mut Output,
    ) -> Rule<Portion> {
        self.end_portion(batch, LongCommand::Nack, |machine, nack, budget| {
            machine.nack_one(now, nack, budget, out)
        })
    }

    fn nack_one(
        &mut self,
        now: Now,
        nack: Nack,
        budget: &mut PortionBudget,
        out: &mut Output,
    ) -> Rule<EndReply> {
        let delay_ms = check::delay(nack.delay_ms)?;
        self.end_by_token(now, nack.token, budget, out, |job, topic| {
            nack.ending(job, topic, now, delay_ms)
        })
    }
}

impl Nack {
    fn ending(self, job: &Job, topic: TopicNo, now: Now, delay_ms: Option<u64>) -> Ending {
        let id = job.id;
        let mut progress = job.progress.clone();
        progress.lapsed = false;
        progress.releases = progress.releases.saturating_add(1);
        progress.priority = self.priority.unwrap_or(progress.priority);
        if let Some(text) = self.error {
            progress.error = Some(check::error_text(text));
        }
        let place = if job.attempts_spent() {
            bury(topic, id, now, &mut progress)
        } else {
            let backoff = job.content.backoff.as_deref().unwrap_or(&Backoff::DEFAULT);
            let delay_ms = delay_ms.unwrap_or_else(|| backoff.delay_ms(id, progress.attempts));
            let class = Class::waiting(progress.priority, Clock::Steady);
            Place { topic, class, due_at: now.after(delay_ms), id }
        };
        Ending { to: Destination::Rest(place), progress, cause: Cause::Nack }
    }
}
