//! Makes events, for watchers, from facts.

use bytes::Bytes;

use super::Machine;
use crate::event::{Event, EventKind};
use crate::fact::{Cause, Destination, Fact};
use crate::limits::EVENT_ERROR_BYTES_MAX;
use crate::place::{Class, Place};
use crate::schedule::ScheduleName;
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
                _ if is_schedule(fact) => (None, None, 0),
                Fact::Put { job, at: place, .. } => {
                    (Some(job.id), at(place), job.progress.attempts)
                }
                Fact::Move { id, to: Destination::Rest(place), progress, .. } => {
                    (Some(*id), at(place), progress.attempts)
                }
                Fact::Move { id, progress, .. } => (Some(*id), None, progress.attempts),
                _ => (None, None, 0),
            };
            let tick = match fact {
                Fact::Put { job, .. } => job.content.tick.as_deref(),
                _ => None,
            };
            let schedule = tick.map(|tick| tick.schedule.clone()).or_else(|| schedule_of(fact));
            let topic = value.name.clone();
            let (key, error) = (self.key_of(fact), error_of(fact));
            let at_ms = now.wall_ms;
            let event = Event { kind, topic, id, at_ms, due_at, attempt, schedule, key, error };
            if let Some(tick) = tick {
                let of = |kind| Event { kind, ..event.clone() };
                let (given, missed) = (of(EventKind::Tick), of(EventKind::TickMissed));
                events
                    .extend([event, given].into_iter().chain((tick.missed > 0).then_some(missed)));
            } else {
                events.push(event);
            }
        }
    }
}

impl<T: Timeline> Machine<T> {
    /// The key of the job of a fact, if it is at hand: of a job that was put or is leased. A copy,
    /// because the key may be part of a large job, and watchers keep many events.
    fn key_of(&self, fact: &Fact) -> Option<Bytes> {
        if is_schedule(fact) {
            return None;
        }
        let key = match fact {
            Fact::Put { job, .. } => job.content.key.as_ref(),
            Fact::Move { to: Destination::Hold(_), key, .. } => key.as_ref(),
            Fact::Move { id, to: Destination::Leased { .. }, .. } => {
                self.leases.get(*id).and_then(|lease| lease.job.key())
            }
            _ => None,
        };
        key.map(|key| Bytes::copy_from_slice(key))
    }
}

/// The beginning of the text that came with a nack or kill, a copy as well.
fn error_of(fact: &Fact) -> Option<Bytes> {
    let Fact::Move { progress, cause: Cause::Nack | Cause::Kill, .. } = fact else { return None };
    let error = progress.error.as_ref()?;
    Some(Bytes::copy_from_slice(&error[..error.len().min(EVENT_ERROR_BYTES_MAX)]))
}

/// Whether a fact is about the entry of a schedule.
fn is_schedule(fact: &Fact) -> bool {
    match fact {
        Fact::Put { at, .. } => at.topic.scheduled_topic().is_some(),
        Fact::Move { topic, .. } => topic.scheduled_topic().is_some(),
        _ => false,
    }
}

/// The schedule whose entry a fact is about.
fn schedule_of(fact: &Fact) -> Option<ScheduleName> {
    let name = match fact {
        Fact::Put { job, .. } if is_schedule(fact) => job.content.key.as_ref(),
        Fact::Move { key, .. } if is_schedule(fact) => key.as_ref(),
        _ => None,
    };
    ScheduleName::new(std::str::from_utf8(name?).ok()?).ok()
}

/// The topic of a fact, and its name.
fn about(fact: &Fact) -> Option<(TopicNo, EventKind)> {
    match fact {
        Fact::Put { at, left, .. } if is_schedule(fact) => {
            // An entry that moves on is no event: the job of its tick is one.
            let topic = at.topic.scheduled_topic().filter(|_| left.is_none());
            return topic.map(|topic| (topic, EventKind::Scheduled));
        }
        Fact::Move { topic, .. } if is_schedule(fact) => {
            return topic.scheduled_topic().map(|topic| (topic, EventKind::Unscheduled));
        }
        _ => {}
    }
    Some(match fact {
        Fact::Put { at, left, .. } => {
            // A put that ends a hold is a new job like any other.
            let replaces = left.is_some_and(|left| left.class != Class::HOLD);
            (at.topic, if replaces { EventKind::Replaced } else { EventKind::Put })
        }
        // That history forgets a job is no event.
        Fact::Move { left: Some(Place { class: Class::DONE, .. }), .. } => return None,
        Fact::Move { topic, to, cause, .. } => (*topic, moved(*cause, to)?),
        Fact::Purged { topic } => (*topic, EventKind::Purged),
        Fact::TopicSet { topic, .. } => (*topic, EventKind::TopicSet),
        Fact::PushSet { topic, push } => (*topic, EventKind::of_push(push.as_deref())),
        Fact::TopicPaused { topic, pause: Some(_) } => (*topic, EventKind::Paused),
        Fact::TopicPaused { topic, pause: None } => (*topic, EventKind::Resumed),
        Fact::TopicBorn { .. }
        | Fact::TopicGone { .. }
        | Fact::LockHeld { .. }
        | Fact::LockFreed { .. } => return None,
    })
}

/// The event of a job that moved. That a dead one lost its key is told by the put that took it.
fn moved(cause: Cause, to: &Destination) -> Option<EventKind> {
    let dead = match to {
        Destination::Rest(place) => place.class == Class::DEAD,
        Destination::Gone => true,
        Destination::Leased { .. } | Destination::Hold(_) => false,
    };
    Some(match cause {
        Cause::Nack | Cause::Expiry if dead => EventKind::Died,
        Cause::TooLate => EventKind::Died,
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
        // That a job waits for room is no event either.
        Cause::KeyPassed | Cause::Park => return None,
    })
}
