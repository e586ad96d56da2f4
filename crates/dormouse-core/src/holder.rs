//! Holders: the clients that leases and locks are shared among.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

/// Names one whose leases and locks are counted together: all clients with one access token. It
/// is good as long as the process: after a restart what is leased or locked counts for nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HolderId(NonZeroU32);

impl HolderId {
    /// A new one; `None`, which is not counted, after four thousand million of them.
    pub fn next() -> Option<HolderId> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let next = |number: u32| number.checked_add(1);
        let number = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        NonZeroU32::new(number).map(HolderId)
    }
}

/// The leases and locks of one holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Leased jobs.
    pub jobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Locks.
    pub locks: u64,
}
