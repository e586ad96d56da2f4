//! The deadlines that must rest beside the jobs that expire, and no others.

use std::collections::BTreeSet;

use dormouse_core::machine::Machine;
use dormouse_core::place::{Class, Place};
use dormouse_core::timeline::memory::MemoryTimeline;

/// Each waiting job that expires has an entry that lets it die in time, its topic knows of entries,
/// and no entry is of another job or of an earlier rest.
pub(super) fn check_deadlines(machine: &Machine<MemoryTimeline>) -> Result<(), String> {
    let entries = machine.timeline().iter().map(|(place, _)| place);
    let have: BTreeSet<Place> =
        entries.filter(|place| place.topic.deadline_topic().is_some()).collect();
    let jobs = machine.timeline().iter().filter(|(place, job)| {
        job.content.expires_after_ms > 0 && place.class.is_waiting() && place.topic.is_topic()
    });
    let want: BTreeSet<Place> = jobs
        .map(|(place, job)| Place {
            topic: place.topic.deadlines(),
            class: Class::waiting(0, place.class.clock()),
            due_at: place.due_at.saturating_add(job.content.expires_after_ms),
            id: place.id.deadline(),
        })
        .collect();
    if let Some(missing) = want.difference(&have).next() {
        return Err(format!("there is no deadline at {missing:?}"));
    }
    if let Some(left) = have.difference(&want).next() {
        return Err(format!("the deadline at {left:?} is of no job"));
    }
    let knows = |place: &Place| {
        let topic = place.topic.deadline_topic();
        machine.topic_images().any(|image| Some(image.topic) == topic && image.has_deadlines)
    };
    match have.iter().find(|place| !knows(place)) {
        Some(place) => Err(format!("its topic does not know of the deadline at {place:?}")),
        None => Ok(()),
    }
}
