//! The client's counters.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the client was opened.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    /// Calls started.
    pub(crate) calls: AtomicU64,
    /// Attempts after the first of a call, for whatever reason.
    pub(crate) retries: AtomicU64,
    /// MOVED and ASK replies.
    pub(crate) redirections: AtomicU64,
    /// Connections opened in place of one that broke.
    pub(crate) reconnects: AtomicU64,
    /// Changes answered with `unconfirmed`.
    pub(crate) unconfirmed: AtomicU64,
}

impl Meters {
    pub(crate) fn note_unconfirmed(&self) {
        count(&self.unconfirmed);
    }
}

/// Adds one. Counters are independent, so their order does not matter.
pub(super) fn count(meter: &AtomicU64) {
    meter.fetch_add(1, Ordering::Relaxed);
}
