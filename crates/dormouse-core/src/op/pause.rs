//! pause and resume: stop reserve on a topic, nothing else. Survives a restart.

use crate::topic::TopicName;

/// Stop reserve on a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseTopic {
    /// Where.
    pub topic: TopicName,
    /// For so long; `None` = until resumed.
    pub for_ms: Option<i64>,
}
