//! cancel: remove a job, by id or key, and say exactly what happened.

use bytes::Bytes;

use crate::job::{JobId, State};
use crate::topic::TopicName;

/// A job by its number or by its producer's own id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// By number.
    Id(JobId),
    /// By key.
    Key {
        /// The topic in which the key is unique.
        topic: TopicName,
        /// The key.
        key: Bytes,
    },
}

/// Remove a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// Which.
    pub target: Target,
    /// Answer `conflict` instead of revoking a lease.
    pub unless_leased: bool,
}

/// A job that was cancelled, moved or revived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Which.
    pub id: JobId,
    /// The state it was in before.
    pub was: State,
    /// When it is due now, wall ms; of a cancelled job, when it would have been.
    pub due_at: u64,
}
