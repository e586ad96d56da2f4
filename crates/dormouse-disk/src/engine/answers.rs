//! Answers on their way to the sinks that asked.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use dormouse_core::Map;
use dormouse_core::backend::{Answer, Sink, Ticket};
use dormouse_core::error::Error;

/// A sink and what it gets.
type Group = (Arc<dyn Sink>, Vec<(Ticket, Answer)>);

/// Answers grouped by sink, in order.
#[derive(Default)]
pub(super) struct Outgoing {
    groups: VecDeque<Group>,
}

impl Outgoing {
    pub(super) fn push(&mut self, sink: &Arc<dyn Sink>, ticket: Ticket, answer: Answer) {
        match self.groups.back_mut() {
            Some((last, answers)) if Arc::ptr_eq(last, sink) => answers.push((ticket, answer)),
            _ => self.groups.push_back((Arc::clone(sink), vec![(ticket, answer)])),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Gives every sink its answers. If one panics, those after it are still here.
    pub(super) fn deliver(&mut self) {
        while let Some((sink, mut answers)) = self.groups.pop_front() {
            sink.deliver(&mut answers);
        }
    }

    /// Gives every sink this error instead: what was asked may or may not have happened.
    pub(super) fn fail(&mut self, error: &Error) {
        for (_, answers) in &mut self.groups {
            answers.iter_mut().for_each(|(_, answer)| *answer = Err(error.clone()));
        }
        // Sinks are other people's code: one that panics must not keep the reason from the others.
        while catch_unwind(AssertUnwindSafe(|| self.deliver())).is_err() {}
    }

    pub(super) fn append(&mut self, other: &mut Outgoing) {
        self.groups.append(&mut other.groups);
    }
}

/// Sinks of requests that wait.
#[derive(Default)]
pub(super) struct Parked {
    sinks: Map<Ticket, Arc<dyn Sink>>,
}

impl Parked {
    pub(super) fn insert(&mut self, ticket: Ticket, sink: Arc<dyn Sink>) {
        self.sinks.insert(ticket, sink);
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Arc<dyn Sink>> {
        self.sinks.remove(&ticket)
    }

    /// Nobody will answer them any more.
    pub(super) fn fail(&mut self, error: &Error) {
        let mut outgoing = Outgoing::default();
        for (ticket, sink) in self.sinks.drain() {
            outgoing.push(&sink, ticket, Err(error.clone()));
        }
        outgoing.fail(error);
    }
}
