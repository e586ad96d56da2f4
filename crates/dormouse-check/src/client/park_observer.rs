//! A layer between a server and its backend that sees which requests are parked and when they are
//! answered. A client alone cannot know whether a request that waits has arrived.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::error::Error;
use dormouse_core::event::Watcher;
use dormouse_core::meter::Meter;

use super::backend::waits;

/// Longer than anything takes on a busy machine; if it passes, the case fails by itself.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Counts the requests that wait; see the module.
#[derive(Default)]
pub struct ParkObserver {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Default)]
struct Counts {
    /// Requests that wait and reached the backend.
    arrived: u64,
    /// Those that the backend has answered.
    answered: u64,
    /// Those whose client has no answer yet.
    open: u64,
}

impl ParkObserver {
    /// The backend, with this observer in front of it.
    pub fn before(self: &Arc<ParkObserver>, backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Observed { backend, observer: Arc::clone(self) })
    }

    /// Requests that have arrived so far.
    pub(super) fn arrived(&self) -> u64 {
        self.lock().arrived
    }

    /// A client is about to wait.
    pub(super) fn open(&self) {
        self.change(|counts| counts.open += 1);
    }

    /// Waits until one more has arrived, or until its client has another answer.
    pub(super) fn wait_for_arrival(&self, arrived: u64, is_over: impl Fn() -> bool) {
        self.wait_while(|counts| counts.arrived == arrived && !is_over());
    }

    /// A client has its answer, or has withdrawn.
    pub(super) fn close(&self) {
        self.change(|counts| counts.open = counts.open.saturating_sub(1));
    }

    /// Waits until every answer of the backend has reached its client.
    pub(super) fn settle(&self) {
        self.wait_while(|counts| counts.arrived != counts.answered + counts.open);
    }

    fn wait_while(&self, condition: impl Fn(&Counts) -> bool) {
        let waited =
            self.changed.wait_timeout_while(self.lock(), TIMEOUT, |counts| condition(counts));
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn change(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Observed {
    backend: Arc<dyn Backend>,
    observer: Arc<ParkObserver>,
}

impl Observed {
    /// Hands a batch to the backend by `send`, and observes its requests that wait.
    fn observe(
        &self,
        batch: Vec<Request>,
        sink: Arc<dyn Sink>,
        send: impl FnOnce(Vec<Request>, Arc<dyn Sink>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let waiting = batch.iter().filter(|request| waits(&request.command));
        let waiting: BTreeSet<Ticket> = waiting.map(|request| request.ticket).collect();
        if waiting.is_empty() {
            return send(batch, sink);
        }
        let count = waiting.len() as u64;
        let (observer, waiting) = (Arc::clone(&self.observer), Mutex::new(waiting));
        let sink = Arc::new(ObservedSink { observer, waiting, sink });
        let taken = send(batch, sink);
        // It must be in the backend before the next request is sent.
        self.observer.change(|counts| {
            counts.arrived += count;
            counts.answered += if taken.is_err() { count } else { 0 };
        });
        taken
    }
}

impl Backend for Observed {
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        self.observe(batch, sink, |batch, sink| self.backend.submit(batch, sink))
    }

    fn defer(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        self.observe(batch, sink, |batch, sink| self.backend.defer(batch, sink))
    }

    fn drive(&self) {
        self.backend.drive();
    }

    fn meters(&self) -> Vec<Meter> {
        self.backend.meters()
    }

    fn watch(&self, watcher: Option<Arc<dyn Watcher>>) {
        self.backend.watch(watcher);
    }
}

struct ObservedSink {
    observer: Arc<ParkObserver>,
    waiting: Mutex<BTreeSet<Ticket>>,
    sink: Arc<dyn Sink>,
}

impl Sink for ObservedSink {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let count = answers.iter().filter(|(ticket, _)| waiting.remove(ticket)).count() as u64;
        drop(waiting);
        self.observer.change(|counts| counts.answered += count);
        self.sink.deliver(answers);
    }
}
