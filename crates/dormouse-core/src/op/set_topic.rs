//! set_topic: change a topic's settings, all at once.

use crate::topic::{Settings, TopicName};

/// Replace a topic's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetTopic {
    /// Where.
    pub topic: TopicName,
    /// All settings; an empty one unsets everything.
    pub settings: Settings,
}
