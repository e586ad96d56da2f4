//! reschedule: move the due time of a delayed or ready job; run now is a reschedule to now.

use crate::command::{Command, Reply, only, operation};
use crate::error::Error;
use crate::fact::{Cause, Destination, Fact};
use crate::job::State;
use crate::machine::{
    BatchProgress, JobLocation, LongCommand, Machine, Origin, Output, Portion, PortionBudget, Rule,
};
use crate::op::{ChangeReply, Target, check};
use crate::place::{Class, Place};
use crate::refusal::cannot_move;
use crate::time::{Clock, Now};
use crate::timeline::{Resting, Timeline};

/// Move a job's due time: `delay_ms` or `at_ms`, or neither = now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reschedule {
    /// The job.
    pub target: Target,
    /// The delay until the job is due.
    pub delay_ms: Option<i64>,
    /// Due at this time, ms since the epoch.
    pub at_ms: Option<i64>,
}

operation! {
    Vec<Reschedule> => Vec<Result<ChangeReply, Error>>,
        items => Command::Reschedule(items), Reply::Changed(replies) => Ok(replies);
    Reschedule => ChangeReply,
        item => Command::Reschedule(vec![item]), Reply::Changed(replies) => only(replies);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn reschedule_portion(
        &mut self,
        now: Now,
        mut batch: BatchProgress<Reschedule, ChangeReply>,
        out: &mut Output,
    ) -> Rule<Portion> {
        self.batch_portion(&mut batch, |machine, item, budget| {
            machine.reschedule_one(now, &item, budget, out)
        })?;
        Ok(batch.into_portion(Reply::Changed, LongCommand::Reschedule))
    }

    fn reschedule_one(
        &mut self,
        now: Now,
        item: &Reschedule,
        budget: &mut PortionBudget,
        out: &mut Output,
    ) -> Rule<ChangeReply> {
        let due = check::due(now, item.delay_ms, item.at_ms)?;
        let resting = match self.locate(now, &item.target)? {
            JobLocation::Leased(id) => return Err(cannot_move(id, State::Leased).into()),
            JobLocation::Resting(resting) => resting,
        };
        budget.take(&resting.job);
        let (id, was) = (resting.job.id, resting.place.state(now));
        if was == State::Dead {
            return Err(cannot_move(id, State::Dead).into());
        }
        let run_now = item.delay_ms.is_none() && item.at_ms.is_none();
        let place = self.move_resting(resting, due, run_now, out);
        Ok(ChangeReply { id, was, due_at: place.due_wall_ms(now) })
    }

    /// Moves a waiting job to another due time; a token whose lease ran out is good no more.
    pub(crate) fn move_resting(
        &mut self,
        resting: Resting,
        (clock, due_at): (Clock, u64),
        kicked: bool,
        out: &mut Output,
    ) -> Place {
        let (id, left) = (resting.job.id, resting.place);
        let mut progress = resting.job.progress.clone();
        progress.lapsed = false;
        progress.kicks = progress.kicks.saturating_add(u32::from(kicked));
        let class = Class::waiting(progress.priority, clock);
        let place = Place { topic: left.topic, class, due_at, id };
        let fact = Fact::Move {
            id,
            topic: left.topic,
            left: Some(left),
            to: Destination::Rest(place),
            progress,
            key: None,
            cause: Cause::Reschedule,
        };
        self.commit(fact, Origin::Found(resting), out);
        place
    }
}
