//! Answers and events on their way out, in order, delivered by one thread at a time.
//!
//! Sinks and watchers are other people's code: they are never called under the engine's lock. The
//! thread that finds nobody delivering delivers everything, also what others add meanwhile; the
//! others leave theirs to it. So events keep their order, and each is out before the answers of its
//! batch.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use dormouse_core::backend::{EventSink, ReplyGroups};
use dormouse_core::error::{Error, Fatal};
use dormouse_core::event::Event;

use super::worker::panicked;

/// A thread that came with a request of its own delivers at most this often for others.
const ROUNDS_MAX: usize = 64;

#[derive(Default)]
struct Outgoing {
    events: Vec<Event>,
    answers: ReplyGroups,
}

impl Outgoing {
    fn is_empty(&self) -> bool {
        self.events.is_empty() && self.answers.is_empty()
    }
}

#[derive(Default)]
struct State {
    outgoing: Outgoing,
    /// Empty; its buffers are used again.
    spare: Outgoing,
    delivering: bool,
    /// A thread waits until nobody delivers: without this, every delivery would end with a system
    /// call.
    draining: bool,
}

/// Answers and events that are to be delivered.
pub(super) struct Outbox {
    state: Mutex<State>,
    /// Notified when a thread has stopped delivering.
    idle: Condvar,
    watch: Arc<EventSink>,
}

/// How a delivery ended.
#[derive(Debug)]
pub(super) enum Delivered {
    /// Everything is delivered, or another thread does it.
    All,
    /// Others add more and more: another thread should go on.
    Part,
    /// Foreign code panicked, so the store must stop.
    Panicked(Fatal),
}

impl Outbox {
    pub(super) fn new(watch: Arc<EventSink>) -> Outbox {
        Outbox { state: Mutex::default(), idle: Condvar::new(), watch }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds events, and the answers that wait for them; both are empty afterwards.
    pub(super) fn push(&self, events: &mut Vec<Event>, answers: &mut ReplyGroups) {
        if events.is_empty() && answers.is_empty() {
            return;
        }
        let mut state = self.lock();
        state.outgoing.events.append(events);
        state.outgoing.answers.append(answers);
    }

    /// Delivers what is there, unless another thread does. Not to be called under any lock.
    pub(super) fn deliver(&self) -> Delivered {
        let mut state = self.lock();
        if state.delivering {
            return Delivered::All;
        }
        for _ in 0..ROUNDS_MAX {
            if state.outgoing.is_empty() {
                self.end(state);
                return Delivered::All;
            }
            state.delivering = true;
            let spare = std::mem::take(&mut state.spare);
            let mut outgoing = std::mem::replace(&mut state.outgoing, spare);
            drop(state);
            let delivered = catch_unwind(AssertUnwindSafe(|| {
                self.watch.emit(&mut outgoing.events);
                outgoing.answers.deliver();
            }));
            if delivered.is_err() {
                let fatal = panicked();
                outgoing.answers.fail(&Error::from(fatal.clone()));
                self.end(self.lock());
                return Delivered::Panicked(fatal);
            }
            state = self.lock();
            state.spare = outgoing;
        }
        self.end(state);
        Delivered::Part
    }

    fn end(&self, mut state: MutexGuard<'_, State>) {
        state.delivering = false;
        let draining = state.draining;
        drop(state);
        if draining {
            self.idle.notify_all();
        }
    }

    /// Delivers everything, and waits for the thread that delivers. Only for the engine thread at
    /// its end, when nobody adds any more: a deliverer never waits for it.
    pub(super) fn drain(&self) {
        loop {
            let mut state = self.lock();
            state.draining = true;
            let waited = self.idle.wait_while(state, |state| state.delivering);
            let state = waited.unwrap_or_else(PoisonError::into_inner);
            if state.outgoing.is_empty() {
                return;
            }
            drop(state);
            self.deliver();
        }
    }
}
