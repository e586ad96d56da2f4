//! reschedule: move the due time of a delayed or ready job; run now is a reschedule to now.

use crate::op::Target;

/// Move a job's due time: `delay_ms` or `at_ms`, or neither = now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reschedule {
    /// Which.
    pub target: Target,
    /// Due so long from now.
    pub delay_ms: Option<i64>,
    /// Due at this time, ms since the epoch.
    pub at_ms: Option<i64>,
}
