//! kick: delayed jobs to ready, the earliest first.

use crate::topic::TopicName;

/// Make delayed jobs ready, at most `limits::BATCH_MAX` per call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kick {
    /// Where.
    pub topic: TopicName,
    /// How many.
    pub max: usize,
}
