//! The deadlines that must rest beside the jobs that expire.

use dormouse_core::job::JobId;
use dormouse_core::machine::Machine;
use dormouse_core::place::Class;
use dormouse_core::time::Now;
use dormouse_core::timeline::memory::MemoryTimeline;
use dormouse_core::topic::TopicNo;

/// An entry without which a job would not die in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Deadline {
    pub(super) topic: TopicNo,
    /// Of the entry.
    pub(super) class: Class,
    pub(super) due_at: u64,
    /// The job.
    pub(super) id: JobId,
}

/// One for each waiting job that expires and has not yet.
pub(super) fn deadlines_needed(machine: &Machine<MemoryTimeline>, now: Now) -> Vec<Deadline> {
    let mut needed = Vec::new();
    for (place, job) in machine.timeline().iter() {
        let (span_ms, clock) = (job.content.expires_after_ms, place.class.clock());
        let due_at = place.due_at.saturating_add(span_ms);
        let expires = span_ms > 0 && place.class.is_waiting() && place.topic.is_topic();
        if expires && due_at > now.on(clock) {
            let class = Class::waiting(0, clock);
            needed.push(Deadline { topic: place.topic, class, due_at, id: place.id });
        }
    }
    needed
}

/// The first of them that is missing.
pub(super) fn missing_deadline(machine: &Machine<MemoryTimeline>, now: Now) -> Option<Deadline> {
    let has = |needed: &Deadline| {
        machine.timeline().iter().any(|(place, entry)| {
            (place.topic, place.class, place.due_at)
                == (needed.topic.deadlines(), needed.class, needed.due_at)
                && entry.content.body[..] == needed.id.0.to_be_bytes()
        })
    };
    deadlines_needed(machine, now).into_iter().find(|needed| !has(needed))
}
