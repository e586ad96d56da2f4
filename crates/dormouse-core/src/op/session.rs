//! Sessions: a connection or process whose leases end with it.

use crate::command::Reply;
use crate::fact::{Cause, Whereto};
use crate::machine::{Machine, Output, Ruled};
use crate::place::{Class, Place};
use crate::refusal::session_closed;
use crate::time::{Clock, Now};
use crate::timeline::Timeline;

/// Names a session while the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

impl<T: Timeline> Machine<T> {
    /// Its waiting reserves are answered with nothing, its leases given back unspent: that is no
    /// release, because nobody has looked at the job and decided so.
    pub(crate) fn close_session(
        &mut self,
        now: Now,
        session: SessionId,
        out: &mut Output,
    ) -> Ruled<Reply> {
        let Some(closed) = self.sessions.close(session) else {
            return Ok(Err(session_closed(session)));
        };
        for waiter in closed.waiters {
            self.answer_with_nothing(waiter, out);
        }
        for id in closed.leases {
            if let Some(lease) = self.leases.get(id) {
                let (topic, mut progress) = (lease.topic, lease.job.progress.clone());
                progress.give_back();
                let class = Class::waiting(progress.priority, Clock::Steady);
                let place = Place { topic, class, due_at: now.steady_ms, id };
                self.end_lease(topic, id, Whereto::Rest(place), progress, Cause::Release, out);
            }
        }
        Ok(Ok(Reply::Done))
    }
}
