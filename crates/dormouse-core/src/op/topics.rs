//! topics: a page of topic names.

use crate::op::TopicStats;
use crate::topic::TopicName;

/// A page of topics in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics {
    /// After this one.
    pub after: Option<TopicName>,
    /// How many at most.
    pub limit: usize,
}

/// A page of topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicsPage {
    /// The topics and their counts.
    pub topics: Vec<(TopicName, TopicStats)>,
    /// There are more.
    pub more: bool,
}
