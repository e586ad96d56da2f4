//! Where a waiting job rests: topic, class, due time, id. Everything that is sorted is sorted so.

use std::cmp::Reverse;

use crate::job::JobId;
use crate::time::{Clock, Now};
use crate::topic::TopicNo;

/// A line within a topic whose jobs are consumed in the order of their due times.
///
/// Waiting jobs have a class per priority and clock; dead jobs, key holds and done jobs have one
/// each. The number sorts as reserve looks: priority first, then the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(u64);

impl Class {
    /// The class that sorts first.
    pub const FIRST: Class = Class(0);
    /// Dead jobs, by the steady time of their death; never due.
    pub const DEAD: Class = Class(1 << 33);
    /// Keys kept taken after an ack, by the steady time of their end.
    pub const HOLD: Class = Class((1 << 33) + 1);
    /// Acked jobs that are kept, by the steady time of their ack; never due.
    pub const DONE: Class = Class((1 << 33) + 2);
    /// The first class of ready jobs whose group has no room. Each group, priority and clock has
    /// one of its own; which, its jobs tell.
    pub const PARKED: Class = Class((1 << 33) + 4);
    /// The class that sorts last: a class has 34 bits.
    pub const LAST: Class = Class((1 << 34) - 1);

    /// The class of waiting jobs of this priority whose due time is on this clock.
    pub fn waiting(priority: u32, clock: Clock) -> Class {
        Class(u64::from(priority) << 1 | u64::from(clock == Clock::Wall))
    }

    /// A class of parked jobs, by its number, whose due times are on this clock.
    pub fn parked(lane: u32, clock: Clock) -> Class {
        let number = Class::PARKED.0 + (u64::from(lane) << 1 | u64::from(clock == Clock::Wall));
        Class(number.min(Class::LAST.0))
    }

    /// Whether it is a class of parked jobs.
    pub fn is_parked(self) -> bool {
        self.0 >= Class::PARKED.0
    }

    /// The number of a class of parked jobs.
    pub fn parked_lane(self) -> u32 {
        u32::try_from(self.0.saturating_sub(Class::PARKED.0) >> 1).unwrap_or(u32::MAX)
    }

    /// The class that sorts next, if all exist.
    pub fn following(self) -> Class {
        Class(self.0.saturating_add(1))
    }

    /// The number that stands for this class in files.
    pub fn to_u64(self) -> u64 {
        self.0
    }

    /// The class a file's number stands for, unless it is none.
    pub fn from_u64(number: u64) -> Option<Class> {
        let is_class = number <= Class::DONE.0 || number >= Class::PARKED.0;
        (is_class && number <= Class::LAST.0).then_some(Class(number))
    }

    /// Whether jobs of this class can come due.
    pub fn is_waiting(self) -> bool {
        self.is_offered() || self.is_parked()
    }

    /// Whether reserve looks for jobs in this class.
    pub fn is_offered(self) -> bool {
        self.0 < Class::DEAD.0
    }

    /// The priority of a class that reserve looks at; other classes come last.
    pub fn priority(self) -> u32 {
        // Other numbers have more bits.
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

    /// How long a job resting here has been ready; zero if it is not.
    pub fn overdue_ms(&self, now: Now) -> u64 {
        if self.class.is_waiting() { now.overdue_ms(self.class.clock(), self.due_at) } else { 0 }
    }

    /// How its due time reads on the calendar now.
    pub fn due_wall_ms(&self, now: Now) -> u64 {
        now.to_wall(self.class.clock(), self.due_at)
    }

    /// Whether reserve gives a ready job resting here before one resting there: smaller priority,
    /// then longer overdue, then smaller id.
    pub fn given_before(&self, other: &Place, now: Now) -> bool {
        self.rank(now) < other.rank(now)
    }

    /// The sort key of ready jobs for reserve, smallest first.
    pub(crate) fn rank(&self, now: Now) -> (u32, Reverse<u64>, JobId) {
        (self.class.priority(), Reverse(self.overdue_ms(now)), self.id)
    }
}
