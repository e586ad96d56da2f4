//! The response of cancel, reschedule, run and revive to one job.

use dormouse_core::op::ChangeReply;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::form::{IdOut, StateOut};
use crate::http::response::{HttpResult, ok};
use crate::units::At;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangedCode {
    /// The job is gone.
    Cancelled,
    /// It has another due time.
    Rescheduled,
    /// It is ready again.
    Revived,
}

/// What became of a job.
#[derive(Serialize, ToSchema)]
#[schema(as = Changed)]
pub(crate) struct ChangedOut {
    id: IdOut,
    code: ChangedCode,
    /// The state it was in before.
    was: StateOut,
    /// When it is due now; absent of a job that is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    due_at: Option<At>,
}

pub(super) fn answer_change(code: ChangedCode, changed: ChangeReply) -> HttpResult {
    let ChangeReply { id, was, due_at } = changed;
    let due_at = (code != ChangedCode::Cancelled).then_some(At(due_at));
    ok(&ChangedOut { id: IdOut(id), code, was: StateOut::from(was), due_at })
}
