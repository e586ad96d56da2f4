//! revive: dead to ready, with a fresh attempt budget.

use crate::topic::TopicName;

/// Revive the oldest dead jobs of a topic, at most `limits::BATCH_MAX` per call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviveTopic {
    /// Where.
    pub topic: TopicName,
    /// How many.
    pub max: usize,
}
