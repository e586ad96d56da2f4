//! The sinks of parked requests, which wait for jobs or locks.

use std::sync::Arc;

use dormouse_core::Map;
use dormouse_core::backend::{ReplyGroups, Sink, Ticket};
use dormouse_core::error::Error;

/// Sinks by the ticket of the parked request.
#[derive(Default)]
pub(super) struct ParkedSinks {
    sinks: Map<Ticket, Arc<dyn Sink>>,
}

impl ParkedSinks {
    pub(super) fn insert(&mut self, ticket: Ticket, sink: Arc<dyn Sink>) {
        self.sinks.insert(ticket, sink);
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Arc<dyn Sink>> {
        self.sinks.remove(&ticket)
    }

    /// Answers all of them with this error.
    pub(super) fn fail(&mut self, error: &Error) {
        let mut outgoing = ReplyGroups::default();
        for (ticket, sink) in self.sinks.drain() {
            outgoing.push(&sink, ticket, Err(error.clone()));
        }
        outgoing.fail(error);
    }
}
