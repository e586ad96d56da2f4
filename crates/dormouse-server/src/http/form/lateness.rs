//! How late jobs were handed out.

use serde::Serialize;
use utoipa::ToSchema;

use crate::metrics::LatenessCounts;
use crate::units::At;

/// How late jobs were handed out by this server.
#[derive(Serialize, ToSchema)]
#[schema(as = Lateness)]
pub(crate) struct LatenessOut {
    /// Upper ends of the buckets, inclusive.
    bounds_ms: &'static [u64],
    /// One more than `bounds_ms`: what was later than all of them.
    counts: Vec<u64>,
    sum_ms: u64,
    /// Absent if nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    since: Option<At>,
}

impl From<&LatenessCounts> for LatenessOut {
    fn from(late: &LatenessCounts) -> LatenessOut {
        LatenessOut {
            bounds_ms: late.bounds_ms,
            counts: late.counts.clone(),
            sum_ms: late.sum_ms,
            since: late.since.map(At),
        }
    }
}
