//! The one who watches, if anybody does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dormouse_core::event::{Event, Watcher};

/// Shared by the handles, the engine thread, which makes events, and the thread that tells them.
#[derive(Default)]
pub(super) struct Watch {
    watched: AtomicBool,
    watcher: Mutex<Option<Arc<dyn Watcher>>>,
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<dyn Watcher>>> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, watcher: Option<Arc<dyn Watcher>>) {
        let mut current = self.lock();
        // What is submitted after this call goes through the inbox's lock, so it is seen watched.
        self.watched.store(watcher.is_some(), Ordering::Relaxed);
        let before = std::mem::replace(&mut *current, watcher);
        drop(current);
        // Dropping one is other people's code: not under the lock.
        drop(before);
    }

    /// Whether events are worth making.
    pub(super) fn is_on(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// Tells them what happened.
    pub(super) fn tell(&self, events: &mut Vec<Event>) {
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
