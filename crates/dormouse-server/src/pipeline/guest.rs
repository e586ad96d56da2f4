//! The time that a client has to present a token, where one is needed.

#![allow(clippy::disallowed_methods, reason = "closes connections without a token")]

use std::sync::Arc;
use std::time::Duration;

use crate::limits::GUEST_MS_MAX;
use crate::visitor::Visitor;
use tokio::time::Instant;

/// Knows since when a client is without a token.
pub(super) struct GuestTimer {
    pub(super) visitor: Arc<Visitor>,
    since: Option<Instant>,
}

impl GuestTimer {
    pub(super) fn new(visitor: Arc<Visitor>) -> GuestTimer {
        let since = visitor.is_guest().then(Instant::now);
        GuestTimer { visitor, since }
    }

    /// When the client must have presented a token; `None` if it has, or needs none. Who gives its
    /// token up has the same time again.
    pub(super) fn deadline(&mut self, is_guest: bool) -> Option<Instant> {
        if is_guest {
            let since = *self.since.get_or_insert_with(Instant::now);
            return Some(since + Duration::from_millis(GUEST_MS_MAX));
        }
        if self.since.take().is_some() {
            self.visitor.welcome();
        }
        None
    }

    /// Whether that time is over.
    pub(super) fn is_over(&mut self, is_guest: bool) -> bool {
        self.deadline(is_guest).is_some_and(|deadline| Instant::now() >= deadline)
    }
}
