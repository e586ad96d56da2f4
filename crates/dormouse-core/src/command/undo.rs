//! How to give back what a reply granted if that reply will not be read.

use super::{Command, Reply};
use crate::job::Token;
use crate::op::{Release, Unlock};

/// The part of a command to remember until its reply has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Its reply grants nothing.
    Nothing,
    /// Leased jobs are released: their attempt is not spent.
    Release,
    /// The session is closed.
    CloseSession,
    /// The lock is given back.
    Unlock(Unlock),
}

impl Command {
    /// How to give back what this command will be granted.
    pub fn undo(&self) -> Undo {
        match self {
            Command::Reserve(_) | Command::ReserveId(_) => Undo::Release,
            Command::OpenSession => Undo::CloseSession,
            Command::Lock(lock) => {
                Undo::Unlock(Unlock { name: lock.name.clone(), owner: lock.owner.clone() })
            }
            _ => Undo::Nothing,
        }
    }
}

impl Undo {
    /// The command that takes this reply back; `None` if it granted nothing.
    pub fn command(self, reply: &Reply) -> Option<Command> {
        match (self, reply) {
            (Undo::Release, Reply::Jobs(jobs)) if !jobs.is_empty() => {
                Some(Command::Release(jobs.iter().map(|job| Release::now(job.token)).collect()))
            }
            (Undo::CloseSession, Reply::Session(session)) => Some(Command::CloseSession(*session)),
            (Undo::Unlock(unlock), Reply::Lock(_)) => Some(Command::Unlock(unlock)),
            _ => None,
        }
    }
}

impl Release {
    /// Gives a job back unspent, ready at once with the priority it had.
    pub fn now(token: Token) -> Release {
        Release { token, delay_ms: None, priority: None }
    }
}
