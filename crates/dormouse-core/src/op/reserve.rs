//! reserve: take jobs that are due.

use std::sync::Arc;

use bytes::Bytes;

use crate::job::{BodyKind, JobId, Token};
use crate::op::SessionId;
use crate::topic::TopicName;

/// Take up to `max` jobs of these topics; wait if there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Where from; order over all: priority, longest overdue, id.
    pub topics: Vec<TopicName>,
    /// Most jobs to take.
    pub max: usize,
    /// How long to wait for the first; 0 = answer at once.
    pub wait_ms: i64,
    /// Lease time instead of each job's own.
    pub ttr_ms: Option<i64>,
    /// The leases end with this session.
    pub session: Option<SessionId>,
}

/// A job in a consumer's hands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedJob {
    /// Its topic.
    pub topic: TopicName,
    /// Its number.
    pub id: JobId,
    /// The producer's own id.
    pub key: Option<Bytes>,
    /// Proof of this hold.
    pub token: Token,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// When it was due, wall ms.
    pub due_at: u64,
    /// When it was put, wall ms.
    pub put_at: u64,
    /// How long after its due time it was handed out.
    pub late_ms: u64,
    /// When the lease runs out, wall ms.
    pub expires_at: u64,
    /// The lease's length.
    pub ttr_ms: u64,
    /// Lower is first.
    pub priority: u32,
    /// Small string map.
    pub headers: Option<Arc<Vec<(String, String)>>>,
    /// The work.
    pub body: Bytes,
    /// How the body came in.
    pub body_kind: BodyKind,
}
