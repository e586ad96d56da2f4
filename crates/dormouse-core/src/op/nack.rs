//! nack: the attempt failed; the job waits for its backoff, or is dead if that was the last.

use bytes::Bytes;

use crate::job::Token;

/// Give back after a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nack {
    /// Proof of the lease.
    pub token: Token,
    /// Wait so long instead of the backoff.
    pub delay_ms: Option<i64>,
    /// From now on this priority.
    pub priority: Option<u32>,
    /// What went wrong; kept with the job.
    pub error: Option<Bytes>,
}
