//! revive: dead to ready, with a fresh attempt budget.

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::fact::{Cause, Destination, Fact};
use crate::job::State;
use crate::limits::BATCH_MAX;
use crate::machine::{JobLocation, Machine, Origin, Output, Rule};
use crate::op::{ChangeReply, Target};
use crate::place::{Class, Place};
use crate::refusal::{not_dead, passing_cancelled};
use crate::time::{Clock, Now};
use crate::timeline::{Head, Resting, Timeline};
use crate::topic::TopicName;

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

operation! {
    Revive => Vec<Result<ChangeReply, Error>>,
        Revive(items) => Command::Revive(items), Reply::Changed(replies) => Ok(replies);
    ReviveTopic => u64,
        request => Command::ReviveTopic(request), Reply::Count(reply) => Ok(reply);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn revive(&mut self, now: Now, targets: &[Target], out: &mut Output) -> Rule<Reply> {
        let replies = self.each(targets, |machine, target| machine.revive_one(now, target, out))?;
        Ok(Reply::Changed(replies))
    }

    fn revive_one(&mut self, now: Now, target: &Target, out: &mut Output) -> Rule<ChangeReply> {
        let located = self.locate(now, target)?;
        let state = located.state(now);
        match located {
            JobLocation::Resting(resting) if state == State::Dead => {
                let id = resting.job.id;
                self.revive_dead(now, resting, false, out);
                Ok(ChangeReply { id, was: State::Dead, due_at: now.wall_ms })
            }
            other => Err(not_dead(other.id(), state).into()),
        }
    }

    /// Revives from the head of the dead, so that no look-up is needed.
    pub(crate) fn revive_topic(
        &mut self,
        now: Now,
        revive: &ReviveTopic,
        out: &mut Output,
    ) -> Rule<Reply> {
        let mut count = 0;
        if let Some(topic) = self.topics.find(&revive.topic) {
            while count < revive.max.min(BATCH_MAX) {
                let place = match self.timeline.oldest(topic, Class::DEAD)? {
                    Head::At(place) => place,
                    Head::Again if count == 0 => return Err(passing_cancelled().into()),
                    Head::Empty | Head::Again => break,
                };
                let resting = self.timeline.take(place)?;
                self.revive_dead(now, resting, true, out);
                count += 1;
            }
        }
        Ok(Reply::Count(count as u64))
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
