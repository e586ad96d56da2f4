//! extend: prolong a lease from now on.

use crate::command::{Command, Reply, only, operation};
use crate::error::Error;
use crate::fact::{Cause, Destination, Fact};
use crate::holder::HolderId;
use crate::job::Token;
use crate::machine::{
    BatchProgress, LongCommand, Machine, Origin, Output, Portion, PortionBudget, Rule, TokenState,
};
use crate::op::check;
use crate::refusal::{lease_lost, nothing_to_extend};
use crate::time::{Clock, Now};
use crate::timeline::{Resting, Timeline};

/// Prolong a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extend {
    /// Proof of the lease.
    pub token: Token,
    /// How long from now; without it, the lease's own length.
    pub ttr_ms: Option<i64>,
}

/// A prolonged lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendReply {
    /// When it now runs out, wall ms.
    pub expires_at: u64,
}

operation! {
    Vec<Extend> => Vec<Result<ExtendReply, Error>>,
        items => Command::Extend(items), Reply::Extended(replies) => Ok(replies);
    Extend => ExtendReply,
        item => Command::Extend(vec![item]), Reply::Extended(replies) => only(replies);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn extend_portion(
        &mut self,
        now: Now,
        mut batch: BatchProgress<Extend, ExtendReply>,
        holder: Option<HolderId>,
        out: &mut Output,
    ) -> Rule<Portion> {
        self.batch_portion(&mut batch, |machine, extend, budget| {
            machine.extend_one(now, extend, holder, budget, out)
        })?;
        let more = |batch| LongCommand::Extend(batch, holder);
        Ok(batch.into_portion(Reply::Extended, more))
    }

    fn extend_one(
        &mut self,
        now: Now,
        extend: Extend,
        holder: Option<HolderId>,
        budget: &mut PortionBudget,
        out: &mut Output,
    ) -> Rule<ExtendReply> {
        let asked_ms = check::ttr(extend.ttr_ms)?;
        let token = extend.token;
        match self.token_state(token)? {
            TokenState::Gone => return Err(nothing_to_extend(token.id).into()),
            TokenState::Lost(resting) => {
                resting.iter().for_each(|resting| budget.take(&resting.job));
                return Err(lease_lost(token).into());
            }
            TokenState::Leased(_) => {}
            TokenState::Lapsed(resting) => {
                budget.take(&resting.job);
                let topic = resting.place.topic;
                // Leases that ran out took no room, so there may be any number of them.
                if !self.has_lease_room(topic, holder) {
                    return Err(self.no_lease_room(topic, holder).into());
                }
                self.check_slot(&resting, now)?;
                self.take_back(*resting, out);
            }
        }
        let Some(lease) = self.leases.get(token.id) else { return Err(lease_lost(token).into()) };
        let expires_at = now.after(asked_ms.unwrap_or(lease.ttr_ms));
        // A lease that outlived a restart counts for nobody until its holder shows itself here.
        self.begin_lease(token.id, expires_at, lease.session, holder);
        Ok(ExtendReply { expires_at: now.to_wall(Clock::Steady, expires_at) })
    }

    /// A lease that ran out goes on, because the job was not taken since: same fence, same
    /// attempt. It belongs to no session: the one it had may be closed.
    fn take_back(&mut self, resting: Resting, out: &mut Output) {
        let (place, ttr_ms) = (resting.place, resting.job.content.ttr_ms);
        let mut progress = resting.job.progress.clone();
        progress.lapsed = false;
        let fact = Fact::Move {
            id: place.id,
            topic: place.topic,
            left: Some(place),
            to: Destination::Leased { ttr_ms, session: false },
            progress,
            key: None,
            cause: Cause::Extend,
        };
        self.commit(fact, Origin::Found(resting), out);
    }
}
