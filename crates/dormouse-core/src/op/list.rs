//! list: a page of jobs of a state.

use crate::job::State;
use crate::op::JobView;
use crate::topic::TopicName;

/// A page of jobs: waiting ones by priority, then due time; dead ones by age; leased ones by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Where.
    pub topic: TopicName,
    /// Which state.
    pub state: State,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// How many at most.
    pub limit: usize,
}

/// A page of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The jobs.
    pub jobs: Vec<JobView>,
    /// Where the next page begins; `None` = this was the last.
    pub cursor: Option<String>,
}
