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
struct State {
    events: Vec<Event>,
    answers: ReplyGroups,
    delivering: bool,
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
        state.events.append(events);
        state.answers.append(answers);
    }

    /// Delivers what is there, unless another thread does. Not to be called under any lock.
    pub(super) fn deliver(&self) -> Delivered {
        for _ in 0..ROUNDS_MAX {
            let Some((mut events, mut answers)) = self.begin() else { return Delivered::All };
            let delivered = catch_unwind(AssertUnwindSafe(|| {
                self.watch.emit(&mut events);
                answers.deliver();
            }));
            if delivered.is_err() {
                let fatal = panicked();
                answers.fail(&Error::from(fatal.clone()));
                self.end();
                return Delivered::Panicked(fatal);
            }
            self.end();
        }
        Delivered::Part
    }

    fn begin(&self) -> Option<(Vec<Event>, ReplyGroups)> {
        let mut state = self.lock();
        if state.delivering || (state.events.is_empty() && state.answers.is_empty()) {
            return None;
        }
        state.delivering = true;
        Some((std::mem::take(&mut state.events), std::mem::take(&mut state.answers)))
    }

    fn end(&self) {
        self.lock().delivering = false;
        self.idle.notify_all();
    }

    /// Delivers everything, and waits for the thread that delivers. Only for the engine thread at
    /// its end, when nobody adds any more: a deliverer never waits for it.
    pub(super) fn drain(&self) {
        loop {
            let state = self.lock();
            let waited = self.idle.wait_while(state, |state| state.delivering);
            let state = waited.unwrap_or_else(PoisonError::into_inner);
            if state.events.is_empty() && state.answers.is_empty() {
                return;
            }
            drop(state);
            self.deliver();
        }
    }
}
