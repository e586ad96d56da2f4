//! What to do with an answer that nobody will read.

use dormouse_core::command::{Command, Reply};
use dormouse_core::op;

/// How to give back what an answer brought.
pub(crate) enum Undo {
    /// Leased jobs are released: their attempt was not spent.
    Release,
    /// A session ends.
    EndSession,
    /// A lock is free again.
    Unlock(op::Unlock),
}

impl Undo {
    /// The command that undoes this reply; `None` if it left nothing behind.
    pub(crate) fn command(self, reply: Reply) -> Option<Command> {
        match (self, reply) {
            (Undo::Release, Reply::Jobs(jobs)) if !jobs.is_empty() => {
                let unspent = |job: &op::LeasedJob| release(job.token);
                Some(Command::Release(jobs.iter().map(unspent).collect()))
            }
            (Undo::EndSession, Reply::Session(id)) => Some(Command::CloseSession(id)),
            (Undo::Unlock(unlock), Reply::Lock(_)) => Some(Command::Unlock(unlock)),
            _ => None,
        }
    }
}

/// Give this one back, ready at once.
pub(crate) fn release(token: dormouse_core::job::Token) -> op::Release {
    op::Release { token, delay_ms: None, priority: None }
}
