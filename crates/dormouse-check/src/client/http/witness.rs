//! Somebody between a server and its backend who sees which requests wait, and when they no longer
//! do. Over HTTP alone nobody can know whether a request that waits has arrived.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::error::Error;
use dormouse_core::event::Watcher;
use dormouse_core::meter::Meter;

use super::waits;

/// Longer than anything takes on a busy machine; what is wrong then is for the case to say.
const PATIENCE: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Default)]
pub struct Witness {
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Default)]
struct Seen {
    /// Requests that wait and reached the backend.
    came: u64,
    /// Those that the backend has answered.
    answered: u64,
    /// Those whose client has no answer yet.
    open: u64,
}

impl Witness {
    /// The backend, with the witness before it.
    pub fn before(self: &Arc<Witness>, backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Witnessed { backend, witness: Arc::clone(self) })
    }

    /// How many came so far.
    pub(super) fn came(&self) -> u64 {
        self.lock().came
    }

    /// A client is about to wait.
    pub(super) fn open(&self) {
        self.change(|seen| seen.open += 1);
    }

    /// Waits until one more came, or until its client is told otherwise.
    pub(super) fn wait_for_arrival(&self, came: u64, is_over: impl Fn() -> bool) {
        self.wait_while(|seen| seen.came == came && !is_over());
    }

    /// A client has its answer, or wants none any more.
    pub(super) fn close(&self) {
        self.change(|seen| seen.open = seen.open.saturating_sub(1));
    }

    /// Waits until every answer of the backend is with its client.
    pub(super) fn settle(&self) {
        self.wait_while(|seen| seen.came != seen.answered + seen.open);
    }

    fn wait_while(&self, condition: impl Fn(&Seen) -> bool) {
        let waited = self.changed.wait_timeout_while(self.lock(), PATIENCE, |seen| condition(seen));
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Witnessed {
    backend: Arc<dyn Backend>,
    witness: Arc<Witness>,
}

impl Backend for Witnessed {
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        let waiting = batch.iter().filter(|request| waits(&request.command));
        let waiting: BTreeSet<Ticket> = waiting.map(|request| request.ticket).collect();
        if waiting.is_empty() {
            return self.backend.submit(batch, sink);
        }
        let count = waiting.len() as u64;
        let (witness, waiting) = (Arc::clone(&self.witness), Mutex::new(waiting));
        let told = Arc::new(Told { witness, waiting, sink });
        let taken = self.backend.submit(batch, told);
        // It must be in the backend before what follows it is sent.
        self.witness.change(|seen| {
            seen.came += count;
            seen.answered += if taken.is_err() { count } else { 0 };
        });
        taken
    }

    fn meters(&self) -> Vec<Meter> {
        self.backend.meters()
    }

    fn watch(&self, watcher: Option<Arc<dyn Watcher>>) {
        self.backend.watch(watcher);
    }
}

struct Told {
    witness: Arc<Witness>,
    waiting: Mutex<BTreeSet<Ticket>>,
    sink: Arc<dyn Sink>,
}

impl Sink for Told {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let count = answers.iter().filter(|(ticket, _)| waiting.remove(ticket)).count() as u64;
        drop(waiting);
        self.witness.change(|seen| seen.answered += count);
        self.sink.deliver(answers);
    }
}
