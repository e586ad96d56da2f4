//! kill: to dead, a resting job by id or key, a leased one by its token.

use bytes::Bytes;

use crate::command::{Command, Reply, only, operation};
use crate::error::Error;
use crate::fact::{Cause, Destination};
use crate::job::{Progress, State, Token};
use crate::machine::{
    BatchProgress, Death, JobLocation, LongCommand, Machine, Origin, Output, Portion,
    PortionBudget, Rule, bury,
};
use crate::op::ack::Ending;
use crate::op::{EndReply, Target, check};
use crate::refusal::cannot_kill;
use crate::time::Now;
use crate::timeline::Timeline;

/// Which job to kill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KillTarget {
    /// A leased one.
    Token(Token),
    /// A delayed or ready one.
    Resting(Target),
}

/// Make a job dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kill {
    /// The job.
    pub target: KillTarget,
    /// Why; kept with the job.
    pub error: Option<Bytes>,
    /// From now on this priority.
    pub priority: Option<u32>,
}

operation! {
    Vec<Kill> => Vec<Result<EndReply, Error>>,
        items => Command::Kill(items), Reply::Ended(replies) => Ok(replies);
    Kill => EndReply,
        item => Command::Kill(vec![item]), Reply::Ended(replies) => only(replies);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn kill_portion(
        &mut self,
        now: Now,
        batch: BatchProgress<Kill, EndReply>,
        out: &mut Output,
    ) -> Rule<Portion> {
        self.end_portion(batch, LongCommand::Kill, |machine, kill, budget| {
            let Kill { target, error, priority } = kill;
            let mark = |progress: &mut Progress| {
                progress.priority = priority.unwrap_or(progress.priority);
                if let Some(text) = error {
                    progress.error = Some(check::error_text(text));
                }
            };
            match target {
                KillTarget::Token(token) => machine.kill_held(now, token, mark, budget, out),
                KillTarget::Resting(target) => {
                    machine.kill_resting(now, &target, mark, budget, out)
                }
            }
        })
    }

    fn kill_held(
        &mut self,
        now: Now,
        token: Token,
        mark: impl FnOnce(&mut Progress),
        budget: &mut PortionBudget,
        out: &mut Output,
    ) -> Rule<EndReply> {
        self.end_by_token(now, token, budget, out, |job, topic| {
            let mut progress = job.progress.clone();
            mark(&mut progress);
            let place = bury(topic, job.id, now, &mut progress);
            Ending { to: Destination::Rest(place), progress, cause: Cause::Kill }
        })
    }

    fn kill_resting(
        &mut self,
        now: Now,
        target: &Target,
        mark: impl FnOnce(&mut Progress),
        budget: &mut PortionBudget,
        out: &mut Output,
    ) -> Rule<EndReply> {
        let resting = match self.locate(now, target)? {
            JobLocation::Leased(id) => return Err(cannot_kill(id, State::Leased).into()),
            JobLocation::Resting(resting) => resting,
        };
        budget.take(&resting.job);
        if resting.place.state(now) == State::Dead {
            return Err(cannot_kill(resting.job.id, State::Dead).into());
        }
        let (id, left) = (resting.job.id, resting.place);
        let mut progress = resting.job.progress.clone();
        mark(&mut progress);
        let place = bury(left.topic, id, now, &mut progress);
        let death = Death { left: Some(left), place, progress, cause: Cause::Kill };
        self.die(now, death, Origin::Found(resting), out)?;
        Ok(EndReply::Done)
    }
}
