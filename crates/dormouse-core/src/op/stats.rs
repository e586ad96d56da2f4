//! stats: counts of a topic or of all, at a cost independent of the backlog.

use crate::image::Counts;
use crate::topic::{Settings, TopicName};

/// Ask for counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Of this topic; `None` = of all together.
    pub topic: Option<TopicName>,
}

/// Counts of a topic, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicStats {
    /// Not due yet.
    pub delayed: u64,
    /// Due.
    pub ready: u64,
    /// Due, with a priority below the default.
    pub urgent: u64,
    /// Running totals; `counts.waiting` is delayed + ready.
    pub counts: Counts,
    /// Reserves waiting on it.
    pub waiters: u64,
    /// How long the job reserve would give next has been ready.
    pub oldest_ready_ms: Option<u64>,
    /// Reserve gives nothing from it; how long still, if that is known.
    pub paused: Option<Option<u64>>,
    /// What its owner set.
    pub settings: Settings,
    /// Topics alive; 1 for a single one.
    pub topics: u64,
    /// Locks held, in the totals only.
    pub locks: u64,
}
