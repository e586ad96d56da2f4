//! get: look at a job without leasing it.

use crate::job::{Job, State};
use crate::topic::TopicName;

/// A job as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView {
    /// Its topic.
    pub topic: TopicName,
    /// Its state.
    pub state: State,
    /// When it is due, was due, or (dead) died; of a leased one, when its lease expires. Wall ms.
    pub due_at: u64,
    /// All that is known of it.
    pub job: Job,
}
