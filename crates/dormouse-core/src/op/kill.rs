//! kill: to dead, a resting job by id or key, a leased one by its token.

use bytes::Bytes;

use crate::job::Token;
use crate::op::Target;

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
    /// Which.
    pub target: KillTarget,
    /// Why; kept with the job.
    pub error: Option<Bytes>,
    /// From now on this priority.
    pub priority: Option<u32>,
}
