//! reserve_id: take a given waiting or dead job now, whatever its due time.

use crate::job::JobId;
use crate::op::SessionId;

/// Take this job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReserveId {
    /// Which.
    pub id: JobId,
    /// Lease time instead of the job's own.
    pub ttr_ms: Option<i64>,
    /// The lease ends with this session.
    pub session: Option<SessionId>,
}
