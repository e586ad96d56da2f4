//! release: give back unspent, as a worker does that shuts down.

use crate::command::{Command, Reply, only, operation};
use crate::error::Error;
use crate::fact::{Cause, Destination};
use crate::job::{JobId, Token};
use crate::limits::{BATCH_MAX, PORTION_BYTES, PORTION_JOBS};
use crate::machine::{BatchProgress, LongCommand, Machine, Output, Portion, PortionBudget, Rule};
use crate::op::ack::Ending;
use crate::op::{EndReply, check};
use crate::place::{Class, Place};
use crate::time::{Clock, Now};
use crate::timeline::Timeline;
use crate::topic::{TopicName, TopicNo};

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

/// Give leased jobs of a topic back, whoever has them, at most `limits::BATCH_MAX` per call: an
/// operator's way out. A call goes on behind the last job of the one before, so that several reach
/// all leases even if jobs are taken again meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseTopic {
    /// The topic.
    pub topic: TopicName,
    /// How many.
    pub max: usize,
}

/// A release of a topic's leases between two portions.
#[derive(Debug)]
pub(crate) struct ReleaseProgress {
    topic: Option<TopicNo>,
    /// Jobs that are still to be given back, and those that were.
    left: usize,
    released: u64,
    /// Those before this one were met already.
    from: JobId,
    /// Where it began, unless it has begun again with the first job since.
    began_at: Option<JobId>,
    /// Leases that began later stay: who asked has not seen them.
    fence_max: u64,
}

operation! {
    ReleaseTopic => u64,
        request => Command::ReleaseTopic(request), Reply::Count(reply) => Ok(reply);
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

    pub(crate) fn release_topic(&mut self, release: &ReleaseTopic) -> LongCommand {
        let left = release.max.min(BATCH_MAX);
        let topic = self.topics.find(&release.topic);
        let from = topic.map_or(JobId(0), |topic| self.leases.take_release_end(topic));
        let (released, fence_max, began_at) = (0, self.last_fence(), Some(from));
        let progress = ReleaseProgress { topic, left, released, from, began_at, fence_max };
        LongCommand::ReleaseTopic(progress)
    }

    /// Gives leases back as they are, by id, as far as a portion reaches: from where the last
    /// release of this topic ended to the last job, then from the first to there.
    pub(crate) fn release_leases(
        &mut self,
        now: Now,
        mut progress: ReleaseProgress,
        out: &mut Output,
    ) -> Portion {
        let done = |released| Portion::Done(Reply::Count(released));
        let Some(topic) = progress.topic else { return done(0) };
        let ids = self.leases.of_topic(topic, progress.from).take(PORTION_JOBS);
        let ids: Vec<JobId> = ids.collect();
        let is_last = ids.len() < PORTION_JOBS;
        let mut bytes = 0;
        for id in ids {
            if progress.left == 0 {
                break;
            }
            if bytes > PORTION_BYTES {
                return Portion::More(LongCommand::ReleaseTopic(progress));
            }
            progress.from = JobId(id.0.saturating_add(1));
            let Some(lease) = self.leases.get(id) else { continue };
            if lease.job.fence() > progress.fence_max {
                continue;
            }
            bytes += lease.job.bytes();
            let mut given_back = lease.job.progress();
            given_back.release();
            let class = Class::waiting(given_back.priority, Clock::Steady);
            let place = Place { topic, class, due_at: now.steady_ms, id };
            self.end_lease(topic, id, Destination::Rest(place), given_back, Cause::Release, out);
            progress.left -= 1;
            progress.released += 1;
        }
        if progress.left == 0 {
            self.leases.note_release_end(topic, progress.from);
            return done(progress.released);
        }
        if is_last && progress.began_at.take().is_none_or(|from| from == JobId(0)) {
            return done(progress.released);
        }
        if is_last {
            // What it meets a second time then is no older than it, and stays.
            progress.from = JobId(0);
        }
        Portion::More(LongCommand::ReleaseTopic(progress))
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
