//! Events: what this server did, for whoever watches it. Each server tells of what went through it;
//! what time alone does (a lease that runs out) is told by none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dormouse_core::event::{Event, EventKind, Watcher};
use dormouse_core::job::JobId;
use dormouse_core::topic::TopicName;

/// Who watches.
#[derive(Default)]
pub(crate) struct EventSink {
    watched: AtomicBool,
    watcher: Mutex<Option<Arc<dyn Watcher>>>,
}

/// What happened to a job, besides where and when.
#[derive(Clone, Copy)]
pub(crate) struct EventDetails {
    pub(crate) kind: EventKind,
    pub(crate) id: Option<JobId>,
    pub(crate) due_at: Option<u64>,
    pub(crate) attempt: u32,
}

impl EventSink {
    pub(crate) fn set(&self, watcher: Option<Arc<dyn Watcher>>) {
        self.watched.store(watcher.is_some(), Ordering::Relaxed);
        *self.watcher.lock().unwrap_or_else(PoisonError::into_inner) = watcher;
    }

    /// Whether anybody wants to know: events cost nothing otherwise.
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// Tells what happened in a topic.
    pub(crate) fn emit(
        &self,
        topic: &TopicName,
        at_ms: u64,
        events: impl IntoIterator<Item = EventDetails>,
    ) {
        let event = |details: EventDetails| {
            let EventDetails { kind, id, due_at, attempt } = details;
            Event { kind, topic: topic.clone(), id, at_ms, due_at, attempt }
        };
        let mut events: Vec<Event> = events.into_iter().map(event).collect();
        let watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(watcher) = watcher
            && !events.is_empty()
        {
            watcher.observe(&mut events);
        }
    }
}
