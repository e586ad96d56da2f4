//! What get, cancel, reschedule, run and revive share: one job in, one item out.

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::op::Changed;
use serde::Serialize;
use utoipa::ToSchema;

use crate::client::unexpected;
use crate::http::App;
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

/// Asks for a change of one job and answers for it.
pub(super) async fn change(app: &App, code: ChangedCode, command: Command) -> HttpResult {
    let changed = match app.client.call(command).await? {
        Reply::Changed(items) => only(items)?,
        other => return Err(unexpected(&other).into()),
    };
    let Changed { id, was, due_at } = changed;
    let due_at = (code != ChangedCode::Cancelled).then_some(At(due_at));
    ok(&ChangedOut { id: IdOut(id), code, was: StateOut::from(was), due_at })
}

/// The only item of a reply to one.
pub(super) fn only<T>(items: Vec<Result<T, Error>>) -> Result<T, Error> {
    items.into_iter().next().unwrap_or_else(|| Err(unexpected(&Reply::Done)))
}
