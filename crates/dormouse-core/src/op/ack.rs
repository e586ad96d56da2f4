//! ack: the work is done, the job goes.

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::fact::{Cause, Destination, Fact};
use crate::job::{Job, Progress, Token};
use crate::machine::{
    BatchProgress, Death, LongCommand, Machine, Origin, Output, Portion, PortionBudget, Rule,
    TokenState,
};
use crate::place::{Class, Place};
use crate::refusal::lease_lost;
use crate::time::Now;
use crate::timeline::Timeline;
use crate::topic::TopicNo;

/// The result of ack, nack, release or kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReply {
    /// It was done.
    Done,
    /// The attempt failed, and there will be another one.
    Retry {
        /// When the job is due again, wall ms.
        due_at: u64,
    },
    /// Nack or expiry spent the last attempt: the job is dead.
    Dead,
    /// The job is not there (any more): acking twice is harmless.
    Gone,
}

/// How a lease ends: what ack, nack, release and kill decide once the token is good.
pub(crate) struct Ending {
    pub(crate) to: Destination,
    pub(crate) progress: Progress,
    pub(crate) cause: Cause,
}

/// Finish leased jobs: the work is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack(pub Vec<Token>);

operation! {
    Ack => Vec<Result<EndReply, Error>>,
        Ack(items) => Command::Ack(items), Reply::Ended(replies) => Ok(replies);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn ack_portion(
        &mut self,
        now: Now,
        batch: BatchProgress<Token, EndReply>,
        out: &mut Output,
    ) -> Rule<Portion> {
        self.end_portion(batch, LongCommand::Ack, |machine, token, budget| {
            machine.ack_one(now, token, budget, out)
        })
    }

    pub(crate) fn ack_one(
        &mut self,
        now: Now,
        token: Token,
        budget: &mut PortionBudget,
        out: &mut Output,
    ) -> Rule<EndReply> {
        self.end_by_token(now, token, budget, out, |job, topic| {
            let progress = job.progress.clone();
            let to = match job.key() {
                Some(_) if job.content.key_ttl_ms > 0 => {
                    let due_at = now.after(job.content.key_ttl_ms);
                    Destination::Hold(Place { topic, class: Class::HOLD, due_at, id: job.id })
                }
                _ => Destination::Gone,
            };
            Ending { to, progress, cause: Cause::Ack }
        })
    }

    /// Does items of an ack, nack, release or kill.
    pub(crate) fn end_portion<I>(
        &mut self,
        mut batch: BatchProgress<I, EndReply>,
        more: impl FnOnce(BatchProgress<I, EndReply>) -> LongCommand,
        rule: impl FnMut(&mut Machine<T>, I, &mut PortionBudget) -> Rule<EndReply>,
    ) -> Rule<Portion> {
        self.batch_portion(&mut batch, rule)?;
        Ok(batch.into_portion(Reply::Ended, more))
    }

    /// Ends the hold that this token proves, be its lease still on or run out.
    pub(crate) fn end_by_token(
        &mut self,
        now: Now,
        token: Token,
        budget: &mut PortionBudget,
        out: &mut Output,
        decide: impl FnOnce(&Job, TopicNo) -> Ending,
    ) -> Rule<EndReply> {
        let (ending, key, topic, left, origin) = match self.token_state(token)? {
            TokenState::Gone => return Ok(EndReply::Gone),
            TokenState::Lost(resting) => {
                resting.iter().for_each(|resting| budget.take(&resting.job));
                return Err(lease_lost(token).into());
            }
            TokenState::Leased(lease) => {
                let (job, topic) = (lease.job.to_job(token.id), lease.topic);
                let ending = decide(&job, topic);
                (ending, job.key().cloned(), topic, None, Origin::Live)
            }
            TokenState::Lapsed(resting) => {
                budget.take(&resting.job);
                let place = resting.place;
                let ending = decide(&resting.job, place.topic);
                let key = resting.job.key().cloned();
                (ending, key, place.topic, Some(place), Origin::Found(*resting))
            }
        };
        let Ending { mut to, mut progress, cause } = ending;
        if cause == Cause::Ack && self.keeps_done(topic) {
            progress.lapsed = false;
            // Rounded up as due times are: the spans that are counted from it must not end early.
            let due_at = now.steady_ms.saturating_add(u64::from(now.fraction));
            to = Destination::Rest(Place { topic, class: Class::DONE, due_at, id: token.id });
            self.plan_trim_done(topic, now);
        }
        let key = key.filter(|_| matches!(to, Destination::Hold(_)));
        let reply = match &to {
            Destination::Rest(place) if place.class == Class::DEAD && cause != Cause::Kill => {
                EndReply::Dead
            }
            Destination::Rest(place) if cause == Cause::Nack => {
                EndReply::Retry { due_at: place.due_wall_ms(now) }
            }
            _ => EndReply::Done,
        };
        match to {
            Destination::Rest(place) if place.class == Class::DEAD => {
                self.die(now, Death { left, place, progress, cause }, origin, out)?;
            }
            _ => {
                let fact = Fact::Move { id: token.id, topic, left, to, progress, key, cause };
                self.commit(fact, origin, out);
            }
        }
        Ok(reply)
    }

    fn keeps_done(&self, topic: TopicNo) -> bool {
        self.topics.get(topic).is_some_and(|value| value.settings.keep_done_ms.is_some())
    }
}
