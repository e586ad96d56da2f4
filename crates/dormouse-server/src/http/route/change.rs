//! The response of cancel, reschedule, run and revive about a job.

use dormouse_core::op::ChangeReply;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::form::{IdOut, StateOut};
use crate::http::response::{HttpResult, ok};
use crate::units::At;

/// The change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangedCode {
    /// The job is removed.
    Cancelled,
    /// The job has another due time.
    Rescheduled,
    /// The job is ready again.
    Revived,
}

/// The change of a job.
#[derive(Serialize, ToSchema)]
#[schema(as = Changed)]
pub(crate) struct ChangedOut {
    id: IdOut,
    code: ChangedCode,
    /// The state it was in before.
    was: StateOut,
    /// The new due time; absent if the job is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    due_at: Option<At>,
}

impl ChangedOut {
    pub(super) fn new(code: ChangedCode, changed: ChangeReply) -> ChangedOut {
        let ChangeReply { id, was, due_at } = changed;
        let due_at = (code != ChangedCode::Cancelled).then_some(At(due_at));
        ChangedOut { id: IdOut(id), code, was: StateOut::from(was), due_at }
    }
}

pub(super) fn answer_change(code: ChangedCode, changed: ChangeReply) -> HttpResult {
    ok(&ChangedOut::new(code, changed))
}
