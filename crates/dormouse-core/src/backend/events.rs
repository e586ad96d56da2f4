//! Passes events on to the one watcher of a backend, if there is one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::event::{Event, Watcher};

/// Shared by a backend's handles and by the threads that make and emit events.
#[derive(Default)]
pub struct EventSink {
    watched: AtomicBool,
    watcher: Mutex<Option<Arc<dyn Watcher>>>,
}

impl EventSink {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<dyn Watcher>>> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the watcher; `None` = events are dropped.
    pub fn set(&self, watcher: Option<Arc<dyn Watcher>>) {
        let mut current = self.lock();
        // A request submitted after this call passes the backend's lock, so its events are made.
        self.watched.store(watcher.is_some(), Ordering::Relaxed);
        let before = std::mem::replace(&mut *current, watcher);
        drop(current);
        // Dropping a watcher runs foreign code: not under the lock.
        drop(before);
    }

    /// Whether events are worth making.
    pub fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// Gives events to the watcher and empties the list.
    pub fn emit(&self, events: &mut Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let watcher = self.lock().clone();
        if let Some(watcher) = watcher {
            watcher.observe(events);
        }
        events.clear();
    }
}
