//! Locks: named, exclusive, re-entrant for the same owner, expiring, each grant with a growing
//! fencing number.

use bytes::Bytes;

/// Take a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its name.
    pub name: Bytes,
    /// Who asks; the same owner may take it again.
    pub owner: Bytes,
    /// How long it lasts unless renewed.
    pub ttl_ms: i64,
    /// How long to wait for it; 0 = answer `conflict` at once.
    pub wait_ms: i64,
}

/// Prolong a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewLock {
    /// Its name.
    pub name: Bytes,
    /// Who holds it.
    pub owner: Bytes,
    /// How long from now; without it, as it was granted.
    pub ttl_ms: Option<i64>,
}

/// Give a lock back, once per time it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlock {
    /// Its name.
    pub name: Bytes,
    /// Who holds it.
    pub owner: Bytes,
}

/// A lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockReply {
    /// Grows with every grant of any lock; hand it to what the lock protects.
    pub fence: u64,
    /// When it runs out, wall ms.
    pub expires_at: u64,
    /// How often the owner must give it back.
    pub depth: u32,
}
