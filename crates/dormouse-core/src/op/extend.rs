//! extend: prolong a lease from now on.

use crate::backend::Ticket;
use crate::command::{Command, Reply, only, operation};
use crate::error::{Error, Fatal};
use crate::fact::{Cause, Destination, Fact};
use crate::job::Token;
use crate::machine::{Machine, Origin, Output, Rule, TokenState, When, answered};
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
    pub(crate) fn extend(
        &mut self,
        now: Now,
        ticket: Ticket,
        extends: &[Extend],
        out: &mut Output,
    ) -> Result<(), Fatal> {
        let replies = self.each(extends, |machine, extend| machine.extend_one(now, extend, out));
        out.answers.push((ticket, answered(replies)?.map(Reply::Extended), When::Prompt));
        Ok(())
    }

    fn extend_one(&mut self, now: Now, extend: &Extend, out: &mut Output) -> Rule<ExtendReply> {
        let asked_ms = check::ttr(extend.ttr_ms)?;
        let token = extend.token;
        match self.token_state(token)? {
            TokenState::Gone => return Err(nothing_to_extend(token.id).into()),
            TokenState::Lost(_) => return Err(lease_lost(token).into()),
            TokenState::Leased(_) => {}
            TokenState::Lapsed(resting) => self.take_back(*resting, out),
        }
        let Some(lease) = self.leases.get(token.id) else { return Err(lease_lost(token).into()) };
        let expires_at = now.after(asked_ms.unwrap_or(lease.ttr_ms));
        self.begin_lease(token.id, expires_at, lease.session);
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
