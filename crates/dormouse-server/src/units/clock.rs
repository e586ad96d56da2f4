//! The wall clock, for defaults that mean "now". The rules have their own clock.

#![allow(clippy::disallowed_methods, reason = "defaults that mean now")]

use std::time::{SystemTime, UNIX_EPOCH};

/// Ms since 1970 UTC.
pub(crate) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
