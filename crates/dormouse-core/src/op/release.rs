//! release: give back unspent, as a worker does that shuts down.

use crate::job::Token;

/// Give back without spending the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Proof of the lease.
    pub token: Token,
    /// Ready after this delay instead of now.
    pub delay_ms: Option<i64>,
    /// From now on this priority.
    pub priority: Option<u32>,
}
