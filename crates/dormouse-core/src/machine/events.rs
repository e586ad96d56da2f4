//! Makes events, for watchers, from facts.

use super::Machine;
use crate::event::{Event, EventKind};
use crate::fact::{Cause, Destination, Fact};
use crate::place::{Class, Place};
use crate::time::Now;
use crate::timeline::Timeline;
use crate::topic::TopicNo;

impl<T: Timeline> Machine<T> {
    /// Adds the events of these facts, which the last step or tick made. Locks, births and ends of
    /// topics are none.
    pub fn add_events(&self, now: Now, facts: &[Fact], events: &mut Vec<Event>) {
        for fact in facts {
            let Some((topic, kind)) = about(fact) else { continue };
            // A topic outlives its last fact by its linger, so it is known here.
            let Some(value) = self.topics.get(topic) else { continue };
            let at = |place: &Place| Some(place.due_wall_ms(now));
            let (id, due_at, attempt) = match fact {
                Fact::Put { job, at: place, .. } => {
                    (Some(job.id), at(place), job.progress.attempts)
                }
                Fact::Move { id, to: Destination::Rest(place), progress, .. } => {
                    (Some(*id), at(place), progress.attempts)
                }
                Fact::Move { id, progress, .. } => (Some(*id), None, progress.attempts),
                _ => (None, None, 0),
            };
            let topic = value.name.clone();
            events.push(Event { kind, topic, id, at_ms: now.wall_ms, due_at, attempt });
        }
    }
}

/// The topic of a fact, and its name.
fn about(fact: &Fact) -> Option<(TopicNo, EventKind)> {
    Some(match fact {
        Fact::Put { at, left, .. } => {
            // A put that ends a hold is a new job like any other.
            let replaces = left.is_some_and(|left| left.class != Class::HOLD);
            (at.topic, if replaces { EventKind::Replaced } else { EventKind::Put })
        }
        Fact::Move { topic, to, cause, .. } => (*topic, moved(*cause, to)),
        Fact::Purged { topic } => (*topic, EventKind::Purged),
        Fact::TopicSet { topic, .. } => (*topic, EventKind::TopicSet),
        Fact::TopicPaused { topic, pause: Some(_) } => (*topic, EventKind::Paused),
        Fact::TopicPaused { topic, pause: None } => (*topic, EventKind::Resumed),
        Fact::TopicBorn { .. }
        | Fact::TopicGone { .. }
        | Fact::LockHeld { .. }
        | Fact::LockFreed { .. } => return None,
    })
}

fn moved(cause: Cause, to: &Destination) -> EventKind {
    let dead = matches!(to, Destination::Rest(place) if place.class == Class::DEAD);
    match cause {
        Cause::Nack | Cause::Expiry if dead => EventKind::Died,
        Cause::Reserve => EventKind::Reserved,
        Cause::Extend => EventKind::Extended,
        Cause::Ack => EventKind::Acked,
        Cause::Nack => EventKind::Nacked,
        Cause::Release => EventKind::Released,
        Cause::Expiry => EventKind::Expired,
        Cause::Kill => EventKind::Killed,
        Cause::Cancel => EventKind::Cancelled,
        Cause::Reschedule => EventKind::Rescheduled,
        Cause::Revive => EventKind::Revived,
        Cause::Trim => EventKind::Trimmed,
    }
}
