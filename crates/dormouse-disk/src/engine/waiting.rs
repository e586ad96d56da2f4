//! The sinks of requests that wait for jobs or locks.

use std::sync::Arc;

use dormouse_core::Map;
use dormouse_core::backend::{ReplyGroups, Sink, Ticket};
use dormouse_core::error::Error;

/// See the module.
#[derive(Default)]
pub(super) struct WaitingSinks {
    sinks: Map<Ticket, Arc<dyn Sink>>,
}

impl WaitingSinks {
    pub(super) fn insert(&mut self, ticket: Ticket, sink: Arc<dyn Sink>) {
        self.sinks.insert(ticket, sink);
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Arc<dyn Sink>> {
        self.sinks.remove(&ticket)
    }

    /// Nobody will answer them any more.
    pub(super) fn fail(&mut self, error: &Error) {
        let mut outgoing = ReplyGroups::default();
        for (ticket, sink) in self.sinks.drain() {
            outgoing.push(&sink, ticket, Err(error.clone()));
        }
        outgoing.fail(error);
    }
}
