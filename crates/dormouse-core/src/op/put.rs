//! put: add a job.

use std::sync::Arc;

use bytes::Bytes;

use crate::backoff::Backoff;
use crate::job::{BodyKind, JobId, State};
use crate::topic::TopicName;

/// What to do when the key is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// Answer the existing job.
    #[default]
    Keep,
    /// Answer `conflict`.
    Reject,
    /// Replace what rests.
    Replace,
    /// Replace if the new due time is earlier.
    Earliest,
    /// Replace if the new due time is later.
    Latest,
}

/// A job to add. `delay_ms` or `at_ms` or neither; the rest has defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// Where to.
    pub topic: TopicName,
    /// The work.
    pub body: Bytes,
    /// How the body came in.
    pub body_kind: BodyKind,
    /// Due so long from now.
    pub delay_ms: Option<i64>,
    /// Due at this time, ms since the epoch.
    pub at_ms: Option<i64>,
    /// Lower is first.
    pub priority: Option<u32>,
    /// Lease time.
    pub ttr_ms: Option<i64>,
    /// Attempts before dead; 0 = no limit.
    pub attempts_max: Option<u32>,
    /// Wait after a failed attempt.
    pub backoff: Option<Arc<Backoff>>,
    /// The producer's own id.
    pub key: Option<Bytes>,
    /// What if the key is taken.
    pub on_conflict: OnConflict,
    /// How long the key stays taken after the ack.
    pub key_ttl_ms: Option<i64>,
    /// Small string map.
    pub headers: Option<Arc<Vec<(String, String)>>>,
}

impl Put {
    /// A job due now with every default.
    pub fn new(topic: TopicName, body: impl Into<Bytes>) -> Put {
        Put {
            topic,
            body: body.into(),
            body_kind: BodyKind::Bytes,
            delay_ms: None,
            at_ms: None,
            priority: None,
            ttr_ms: None,
            attempts_max: None,
            backoff: None,
            key: None,
            on_conflict: OnConflict::Keep,
            key_ttl_ms: None,
            headers: None,
        }
    }
}

/// What a put came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// A new job.
    Created,
    /// The key's job stays as it is.
    Duplicate,
    /// The key's job has the new content.
    Replaced,
}

/// The answer to one put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutReply {
    /// The job; of a duplicate, the existing one, or the one whose ack still holds the key.
    pub id: JobId,
    /// What happened.
    pub outcome: PutOutcome,
    /// The job's state; `None` for a duplicate of a held key, whose job is gone.
    pub state: Option<State>,
    /// When it is due, wall ms; of a hold, when the key becomes free; of a leased job, when the
    /// lease expires.
    pub due_at: u64,
}
