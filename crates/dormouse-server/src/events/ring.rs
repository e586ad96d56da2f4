//! The latest events, numbered, for any number of readers at their own pace.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::limits::EVENTS_KEPT;
use dormouse_core::event::{Event, Watcher};
use tokio::sync::watch;

/// The events of one period in which the backend was watched. Events between two periods are
/// unknown, so every ring has its own id, and event numbers are valid in one ring only.
pub(super) struct Ring {
    id: u32,
    kept: Mutex<RingState>,
    last: watch::Sender<u64>,
}

struct RingState {
    events: VecDeque<Event>,
    /// The number of the last one; the first ever is 1.
    last: u64,
}

/// The result of one read.
pub(super) struct EventBatch {
    /// Events after the reader's position that were dropped already.
    pub(super) lost: u64,
    /// The number before the first event here.
    pub(super) after: u64,
    pub(super) events: Vec<Event>,
}

impl Ring {
    pub(super) fn new(id: u32) -> Ring {
        let kept = RingState { events: VecDeque::new(), last: 0 };
        Ring { id, kept: Mutex::new(kept), last: watch::Sender::new(0) }
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// The number of the last event.
    pub(super) fn last(&self) -> u64 {
        self.lock().last
    }

    /// Changes when there are new events.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// Up to `max` events after the one of this number.
    pub(super) fn read(&self, after: u64, max: usize) -> EventBatch {
        let kept = self.lock();
        let before_all = kept.last - kept.events.len() as u64;
        let lost = before_all.saturating_sub(after);
        let after = after.max(before_all).min(kept.last);
        let from = usize::try_from(after - before_all).unwrap_or(usize::MAX);
        let events = kept.events.iter().skip(from).take(max).cloned().collect();
        EventBatch { lost, after, events }
    }

    fn lock(&self) -> MutexGuard<'_, RingState> {
        // Nothing panics while it is held.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Ring {
    fn observe(&self, events: &mut Vec<Event>) {
        let mut kept = self.lock();
        kept.last += events.len() as u64;
        kept.events.extend(events.drain(..));
        let surplus = kept.events.len().saturating_sub(EVENTS_KEPT);
        kept.events.drain(..surplus);
        let last = kept.last;
        drop(kept);
        self.last.send_replace(last);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use dormouse_core::event::EventKind;
    use dormouse_core::job::JobId;
    use dormouse_core::topic::TopicName;

    use super::*;

    /// Emits `count` puts of jobs with ids from `first` on.
    pub(in crate::events) fn put(ring: &Ring, topic: &str, first: u64, count: u64) {
        let event = |id| Event {
            kind: EventKind::Put,
            topic: TopicName::new(topic).unwrap(),
            id: Some(JobId(id)),
            at_ms: 0,
            due_at: None,
            attempt: 0,
            schedule: None,
            key: None,
            error: None,
        };
        ring.observe(&mut (first..first + count).map(event).collect());
    }

    fn check(ring: &Ring, after: u64, max: usize, lost: u64, ids: std::ops::Range<u64>) {
        let batch = ring.read(after, max);
        let found: Vec<u64> = batch.events.iter().map(|event| event.id.unwrap().0).collect();
        assert_eq!(found, ids.clone().collect::<Vec<_>>());
        assert_eq!(batch.lost, lost);
        assert_eq!(batch.after, after + lost);
    }

    #[test]
    fn readers_continue_after_their_last_event() {
        let ring = Ring::new(7);
        check(&ring, 0, 10, 0, 0..0);
        put(&ring, "a", 1, 5);
        check(&ring, 0, 3, 0, 1..4);
        check(&ring, 3, 3, 0, 4..6);
        check(&ring, 5, 3, 0, 0..0);
        assert_eq!((ring.id(), ring.last()), (7, 5));
    }

    #[test]
    fn dropped_events_are_counted() {
        let ring = Ring::new(7);
        let kept = EVENTS_KEPT as u64;
        put(&ring, "a", 1, kept);
        check(&ring, 0, 1, 0, 1..2);
        put(&ring, "a", kept + 1, 10);
        check(&ring, 0, 2, 10, 11..13);
        check(&ring, 4, 2, 6, 11..13);
        put(&ring, "a", kept + 11, 3 * kept);
        check(&ring, 20, 1, 3 * kept - 10, 3 * kept + 11..3 * kept + 12);
        assert_eq!(ring.lock().events.len(), EVENTS_KEPT);
    }
}
