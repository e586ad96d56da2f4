//! Events of this server's own requests. What time alone does, such as the end of a lease, happens
//! in Redis and is emitted by no server.

use dormouse_core::backend::EventSink;
use dormouse_core::event::{Event, EventKind};
use dormouse_core::job::JobId;
use dormouse_core::topic::TopicName;

/// An event without its topic and time.
#[derive(Clone, Copy)]
pub(crate) struct EventDetails {
    pub(crate) kind: EventKind,
    pub(crate) id: Option<JobId>,
    pub(crate) due_at: Option<u64>,
    pub(crate) attempt: u32,
}

/// Emits events of a topic, all at one time by Redis' clock.
pub(crate) fn emit(
    sink: &EventSink,
    topic: &TopicName,
    at_ms: u64,
    events: impl IntoIterator<Item = EventDetails>,
) {
    let event = |details: EventDetails| {
        let EventDetails { kind, id, due_at, attempt } = details;
        let topic = topic.clone();
        let (schedule, key, error) = (None, None, None);
        Event { kind, topic, id, at_ms, due_at, attempt, schedule, key, error }
    };
    sink.emit(&mut events.into_iter().map(event).collect());
}
