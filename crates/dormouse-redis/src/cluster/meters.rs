//! What the link counts of itself.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the link was opened.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    /// Calls begun.
    pub(crate) calls: AtomicU64,
    /// Times a call was sent again, for whatever reason.
    pub(crate) retries: AtomicU64,
    /// Times a node named another one for a slot.
    pub(crate) redirections: AtomicU64,
    /// Connections opened in place of one that broke.
    pub(crate) reconnects: AtomicU64,
    /// Changes of which nobody can tell whether they happened, or will last.
    pub(crate) unconfirmed: AtomicU64,
}

impl Meters {
    /// One change more that was answered with `unconfirmed`.
    pub(crate) fn note_unconfirmed(&self) {
        count(&self.unconfirmed);
    }
}

/// One more. Counters are read one by one, so no order between them is promised.
pub(super) fn count(meter: &AtomicU64) {
    meter.fetch_add(1, Ordering::Relaxed);
}
