//! revive: dead to ready, with a fresh attempt budget.

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::fact::{Cause, Destination, Fact};
use crate::job::State;
use crate::limits::BATCH_MAX;
use crate::machine::{
    BatchProgress, JobLocation, LongCommand, Machine, Origin, Output, Portion, PortionBudget, Rule,
};
use crate::op::{ChangeReply, Target};
use crate::place::{Class, Place};
use crate::refusal::not_dead;
use crate::time::{Clock, Now};
use crate::timeline::{Head, Resting, Timeline};
use crate::topic::{TopicName, TopicNo};

/// Revive the oldest dead jobs of a topic, at most `limits::BATCH_MAX` per call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviveTopic {
    /// The topic.
    pub topic: TopicName,
    /// How many.
    pub max: usize,
}

/// Make dead jobs ready again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revive(pub Vec<Target>);

/// A revival of a topic's dead jobs between two portions.
#[derive(Debug)]
pub(crate) struct ReviveProgress {
    topic: Option<TopicNo>,
    left: usize,
    revived: u64,
}

operation! {
    Revive => Vec<Result<ChangeReply, Error>>,
        Revive(items) => Command::Revive(items), Reply::Changed(replies) => Ok(replies);
    ReviveTopic => u64,
        request => Command::ReviveTopic(request), Reply::Count(reply) => Ok(reply);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn revive_batch(
        &mut self,
        now: Now,
        mut batch: BatchProgress<Target, ChangeReply>,
        out: &mut Output,
    ) -> Rule<Portion> {
        self.batch_portion(&mut batch, |machine, target, budget| {
            machine.revive_one(now, &target, budget, out)
        })?;
        Ok(batch.into_portion(Reply::Changed, LongCommand::Revive))
    }

    fn revive_one(
        &mut self,
        now: Now,
        target: &Target,
        budget: &mut PortionBudget,
        out: &mut Output,
    ) -> Rule<ChangeReply> {
        let located = self.locate(now, target)?;
        let state = located.state(now);
        if let JobLocation::Resting(resting) = &located {
            budget.take(&resting.job);
        }
        match located {
            JobLocation::Resting(resting) if state == State::Dead => {
                let id = resting.job.id;
                self.revive_dead(now, resting, false, out);
                Ok(ChangeReply { id, was: State::Dead, due_at: now.wall_ms })
            }
            other => Err(not_dead(other.id(), state).into()),
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "commands are passed by value")]
    pub(crate) fn revive_topic(&mut self, revive: ReviveTopic) -> LongCommand {
        let topic = self.topics.find(&revive.topic);
        let left = revive.max.min(BATCH_MAX);
        LongCommand::ReviveTopic(ReviveProgress { topic, left, revived: 0 })
    }

    /// Revives from the head of the dead, so that no look-up is needed.
    pub(crate) fn revive_portion(
        &mut self,
        now: Now,
        mut progress: ReviveProgress,
        out: &mut Output,
    ) -> Rule<Portion> {
        let mut budget = PortionBudget::new();
        while budget.is_left() {
            let head = match progress.topic {
                Some(topic) if progress.left > 0 => self.timeline.oldest(topic, Class::DEAD)?,
                _ => Head::Empty,
            };
            let place = match head {
                Head::At(place) => place,
                Head::Empty => return Ok(Portion::Done(Reply::Count(progress.revived))),
                Head::Again => break,
            };
            let resting = self.timeline.take(place)?;
            budget.take(&resting.job);
            self.revive_dead(now, resting, true, out);
            progress.left -= 1;
            progress.revived += 1;
        }
        Ok(Portion::More(LongCommand::ReviveTopic(progress)))
    }

    fn revive_dead(&mut self, now: Now, resting: Resting, taken: bool, out: &mut Output) {
        let (id, left) = (resting.job.id, resting.place);
        let mut progress = resting.job.progress.clone();
        progress.attempts = 0;
        progress.kicks = progress.kicks.saturating_add(1);
        let class = Class::waiting(progress.priority, Clock::Steady);
        let place = Place { topic: left.topic, class, due_at: now.steady_ms, id };
        let fact = Fact::Move {
            id,
            topic: left.topic,
            left: Some(left),
            to: Destination::Rest(place),
            progress,
            key: None,
            cause: Cause::Revive,
        };
        let origin = if taken { Origin::Taken(resting) } else { Origin::Found(resting) };
        self.commit(fact, origin, out);
    }
}
