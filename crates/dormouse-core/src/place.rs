//! Where a waiting job rests: topic, class, due time, id. Everything that is sorted is sorted so.

use crate::job::JobId;
use crate::time::{Clock, Now};
use crate::topic::TopicNo;

/// A line within a topic whose jobs are consumed in the order of their due times.
///
/// Waiting jobs have a class per priority and clock; dead jobs and key holds have one each. The
/// number sorts as reserve looks: priority first, then the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(u64);

impl Class {
    /// Dead jobs, by the steady time of their death; never due.
    pub const DEAD: Class = Class(1 << 33);
    /// Keys kept taken after an ack, by the steady time of their end.
    pub const HOLD: Class = Class((1 << 33) + 1);

    /// The class of waiting jobs of this priority whose due time is on this clock.
    pub fn waiting(priority: u32, clock: Clock) -> Class {
        Class(u64::from(priority) << 1 | u64::from(clock == Clock::Wall))
    }

    /// The number that stands for this class in files.
    pub fn to_u64(self) -> u64 {
        self.0
    }

    /// The class a file's number stands for, unless it is none.
    pub fn from_u64(number: u64) -> Option<Class> {
        (number <= Class::HOLD.0).then_some(Class(number))
    }

    /// Whether jobs of this class can come due.
    pub fn is_waiting(self) -> bool {
        self.0 < Class::DEAD.0
    }

    /// The priority of a waiting class.
    pub fn priority(self) -> u32 {
        // The bits above 33 are set in the dead and hold classes only, which have no priority.
        u32::try_from(self.0 >> 1).unwrap_or(u32::MAX)
    }

    /// The clock by which this class is due.
    pub fn clock(self) -> Clock {
        if self.is_waiting() && self.0 & 1 == 1 { Clock::Wall } else { Clock::Steady }
    }
}

/// A job's position on the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The topic, by number.
    pub topic: TopicNo,
    /// The line within the topic.
    pub class: Class,
    /// When it is due, on the clock of its class.
    pub due_at: u64,
    /// The job.
    pub id: JobId,
}

impl Place {
    /// Whether a job resting here is ready.
    pub fn is_due(&self, now: Now) -> bool {
        self.class.is_waiting() && self.due_at <= now.on(self.class.clock())
    }
}
