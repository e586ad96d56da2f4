//! Events: changes of jobs and topics, for watchers. They are made from facts, and emitted
//! only once those are as durable as promised.

use bytes::Bytes;

use crate::job::JobId;
use crate::schedule::ScheduleName;
use crate::topic::{Push, TopicName};

/// The kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A job was put.
    Put,
    /// A resting job got new content by a put with its key.
    Replaced,
    /// A consumer took the job.
    Reserved,
    /// A lease that had run out was taken up again. Extending one that goes on is no event.
    Extended,
    /// Done; the job is gone.
    Acked,
    /// The attempt failed; the job waits for the next.
    Nacked,
    /// Given back unspent.
    Released,
    /// The lease ran out; the job waits for the next attempt.
    Expired,
    /// Made dead on request.
    Killed,
    /// Dead because its attempts are spent. Emitted instead of `Nacked` or `Expired`.
    Died,
    /// Removed on request.
    Cancelled,
    /// Its due time was moved: reschedule, run now, kick.
    Rescheduled,
    /// Back from dead.
    Revived,
    /// A dead job was removed because too many were dead, or for too long.
    Trimmed,
    /// All resting jobs of a topic were removed; there is no event for each.
    Purged,
    /// Reserve gives nothing from the topic any more.
    Paused,
    /// Reserve gives jobs of the topic again, on request. A pause that ends by itself is no event.
    Resumed,
    /// A topic's settings changed.
    TopicSet,
    /// How a topic's jobs are pushed was set, or goes on after it was disabled.
    PushSet,
    /// A topic's jobs are not pushed until somebody resumes it: its receiver wants no more, or has
    /// failed for too long.
    PushDisabled,
    /// A topic's jobs are not pushed any more, on request.
    PushRemoved,
    /// A schedule was defined. A change of it is no event.
    Scheduled,
    /// A schedule went: on request, or because it has ended.
    Unscheduled,
    /// A tick was given: the job was put for it. Emitted after `Put`.
    Tick,
    /// Ticks just before a tick that was given got no job. Emitted after `Tick`.
    TickMissed,
}

impl EventKind {
    /// The kind of a change that left a topic with this push.
    pub fn of_push(push: Option<&Push>) -> EventKind {
        match push {
            None => EventKind::PushRemoved,
            Some(push) if push.is_disabled => EventKind::PushDisabled,
            Some(_) => EventKind::PushSet,
        }
    }

    /// The kind's word on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            EventKind::Put => "put",
            EventKind::Replaced => "replaced",
            EventKind::Reserved => "reserved",
            EventKind::Extended => "extended",
            EventKind::Acked => "acked",
            EventKind::Nacked => "nacked",
            EventKind::Released => "released",
            EventKind::Expired => "expired",
            EventKind::Killed => "killed",
            EventKind::Died => "died",
            EventKind::Cancelled => "cancelled",
            EventKind::Rescheduled => "rescheduled",
            EventKind::Revived => "revived",
            EventKind::Trimmed => "trimmed",
            EventKind::Purged => "purged",
            EventKind::Paused => "paused",
            EventKind::Resumed => "resumed",
            EventKind::TopicSet => "topic_set",
            EventKind::PushSet => "push_set",
            EventKind::PushDisabled => "push_disabled",
            EventKind::PushRemoved => "push_removed",
            EventKind::Scheduled => "scheduled",
            EventKind::Unscheduled => "unscheduled",
            EventKind::Tick => "tick",
            EventKind::TickMissed => "tick_missed",
        }
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The kind of change.
    pub kind: EventKind,
    /// The topic.
    pub topic: TopicName,
    /// To which job; `None` = to the topic.
    pub id: Option<JobId>,
    /// When, wall ms.
    pub at_ms: u64,
    /// When the job is due (a dead one: when it died), wall ms; `None` = it does not rest.
    pub due_at: Option<u64>,
    /// Attempts spent or in course; 0 for a topic.
    pub attempt: u32,
    /// The schedule that the event is about, or that put the job.
    pub schedule: Option<ScheduleName>,
    /// The job's key, where the change had it at hand.
    pub key: Option<Bytes>,
    /// The beginning of the text that came with a nack or kill.
    pub error: Option<Bytes>,
}

/// A receiver of events. Called from the backend's threads, so it must be quick and never block.
pub trait Watcher: Send + Sync {
    /// Takes some events, in the order they happened. Events left in the list are dropped.
    fn observe(&self, events: &mut Vec<Event>);
}
