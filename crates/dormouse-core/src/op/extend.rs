//! extend: prolong a lease from now on.

use crate::job::Token;

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
pub struct Extended {
    /// When it now runs out, wall ms.
    pub expires_at: u64,
}
