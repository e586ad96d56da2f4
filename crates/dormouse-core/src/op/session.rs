//! Sessions: a connection or process whose leases end with it.

use crate::command::{Command, Reply, operation};
use crate::fact::{Cause, Destination};
use crate::machine::{Machine, Orphan, OrphanLease, Output, Rule, job_cost};
use crate::place::{Class, Place};
use crate::refusal::session_closed;
use crate::time::{Clock, Now};
use crate::timeline::Timeline;

/// Names a session while the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Begin a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSession;

/// End a session: its leases are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseSession(pub SessionId);

operation! {
    OpenSession => SessionId,
        OpenSession => Command::OpenSession, Reply::Session(reply) => Ok(reply);
    CloseSession => (),
        CloseSession(session) => Command::CloseSession(session), Reply::Done => Ok(());
}

impl<T: Timeline> Machine<T> {
    /// Its waiting reserves are answered with nothing, its leases given back unspent: that is no
    /// release, because no consumer decided so. If there are very many, the
    /// rest is given back by the next ticks, so that others need not wait for it.
    pub(crate) fn close_session(
        &mut self,
        now: Now,
        session: SessionId,
        out: &mut Output,
    ) -> Rule<Reply> {
        if !self.sessions.close(session, now.steady_ms) {
            return Err(session_closed(session).into());
        }
        let mut budget = std::mem::take(&mut self.step_budget);
        self.give_back_orphans(&mut budget, out);
        self.step_budget = budget;
        Ok(Reply::Done)
    }

    /// Ends what sessions that have ended left behind.
    pub(crate) fn give_back_orphans(&mut self, budget: &mut usize, out: &mut Output) {
        while *budget > 0
            && let Some(orphan) = self.sessions.next_orphan()
        {
            match orphan {
                Orphan::Waiter(waiter) => {
                    *budget = budget.saturating_sub(self.waiters.cost(waiter));
                    self.answer_with_nothing(waiter, out);
                }
                Orphan::Lease(lease) => {
                    let bytes = self.leases.get(lease.id).map_or(0, |l| l.job.bytes());
                    *budget = budget.saturating_sub(job_cost(bytes));
                    self.give_back(lease, out);
                }
            }
        }
    }

    /// As if it happened at the instant at which the session ended: a lease that had run out by
    /// then is left to run out, and a job that was taken since is left to its new holder.
    fn give_back(&mut self, orphan: OrphanLease, out: &mut Output) {
        let OrphanLease { id, session, closed_at } = orphan;
        let Some(lease) = self.leases.get(id) else { return };
        if lease.session != Some(session) || lease.expires_at <= closed_at {
            return;
        }
        let (topic, mut progress) = (lease.topic, lease.job.progress());
        progress.give_back();
        let class = Class::waiting(progress.priority, Clock::Steady);
        let place = Place { topic, class, due_at: closed_at, id };
        self.end_lease(topic, id, Destination::Rest(place), progress, Cause::Release, out);
    }
}
