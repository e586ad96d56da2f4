//! The clock for this protocol's own deadlines: how long a client waits, when a reservation ends.
//! The rules have their own clock, and decide again what is decided by this one.

#![allow(clippy::disallowed_methods, reason = "waits, and the ends of a client's reservations")]

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// For spans.
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Ms since 1970 UTC, to compare with what the rules say of a job.
pub(super) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
