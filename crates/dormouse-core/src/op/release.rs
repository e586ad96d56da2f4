//! release: give back unspent, as a worker does that shuts down.

use crate::command::{Command, Reply, only, operation};
use crate::error::Error;
use crate::fact::{Cause, Destination};
use crate::job::Token;
use crate::machine::{BatchProgress, LongCommand, Machine, Output, Portion, PortionBudget, Rule};
use crate::op::ack::Ending;
use crate::op::{EndReply, check};
use crate::place::{Class, Place};
use crate::time::{Clock, Now};
use crate::timeline::Timeline;

/// Give back without spending the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Proof of the lease.
    pub token: Token,
    /// Ready after this delay instead of now.
    pub delay_ms: Option<i64>,
    /// From now on this priority.
    pub priority: Option<u32>,
}

operation! {
    Vec<Release> => Vec<Result<EndReply, Error>>,
        items => Command::Release(items), Reply::Ended(replies) => Ok(replies);
    Release => EndReply,
        item => Command::Release(vec![item]), Reply::Ended(replies) => only(replies);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn release_portion(
        &mut self,
        now: Now,
        batch: BatchProgress<Release, EndReply>,
        out: &mut Output,
    ) -> Rule<Portion> {
        self.end_portion(batch, LongCommand::Release, |machine, release, budget| {
            machine.release_one(now, &release, budget, out)
        })
    }

    fn release_one(
        &mut self,
        now: Now,
        release: &Release,
        budget: &mut PortionBudget,
        out: &mut Output,
    ) -> Rule<EndReply> {
        let delay_ms = check::delay(release.delay_ms)?.unwrap_or(0);
        self.end_by_token(now, release.token, budget, out, |job, topic| {
            let mut progress = job.progress.clone();
            progress.release();
            progress.priority = release.priority.unwrap_or(progress.priority);
            let class = Class::waiting(progress.priority, Clock::Steady);
            let place = Place { topic, class, due_at: now.after(delay_ms), id: job.id };
            Ending { to: Destination::Rest(place), progress, cause: Cause::Release }
        })
    }
}
