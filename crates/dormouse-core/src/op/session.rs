//! Sessions: a connection or process whose leases end with it.

use crate::command::Reply;
use crate::job::Token;
use crate::machine::{Machine, Output, Ruled};
use crate::op::Release;
use crate::refusal::session_closed;
use crate::time::Now;
use crate::timeline::Timeline;

/// Names a session while the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

impl<T: Timeline> Machine<T> {
    /// Its waiting reserves are answered with nothing, its leases released unspent.
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
                let token = Token { id, fence: lease.job.progress.fence };
                let release = Release { token, delay_ms: None, priority: None };
                // The token is the lease's own, so there is nothing to be answered.
                let _done = self.release_one(now, &release, out)?;
            }
        }
        Ok(Ok(Reply::Done))
    }
}
