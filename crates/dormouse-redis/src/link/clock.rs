//! The only place of the link that reads a clock.

use std::time::Instant;

/// The instant a call leaves, lands or may be tried again.
pub(crate) fn now() -> Instant {
    Instant::now()
}
