//! locks: a page of the locks that are held; and the end of one that somebody holds.

use std::borrow::Cow;

use axum::extract::State;
use bytes::Bytes;
use dormouse_core::op::{BreakLock, HeldLockView, Locks};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::list::LIMIT_DEFAULT;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, Problems, StateProblems};
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::path::{InName, NamePath};
use crate::http::response::{HttpResult, ok};
use crate::units::At;

/// The page to read.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct LocksQuery {
    /// Only locks whose name begins so.
    prefix: Option<String>,
    /// The cursor of the previous page.
    cursor: Option<String>,
    /// The largest number of locks in the page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
}

/// A lock that somebody holds.
#[derive(Serialize, ToSchema)]
#[schema(as = HeldLock)]
pub(crate) struct HeldLockOut<'a> {
    name: Cow<'a, str>,
    owner: Cow<'a, str>,
    /// The fence of the grant.
    #[schema(pattern = "^[0-9]+$")]
    fence: String,
    /// When it expires unless renewed.
    expires_at: At,
    /// The number of releases until it is free.
    depth: u32,
}

/// A page of locks. It may be empty and not be the last: there are more as long as it has a cursor.
#[derive(Serialize, ToSchema)]
#[schema(as = LocksPage)]
pub(crate) struct LocksOut<'a> {
    locks: Vec<HeldLockOut<'a>>,
    /// The cursor of the next page; absent in the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cursor: Option<&'a str>,
}

/// The query of a break.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct BreakQuery {
    /// Break only the grant with this fence, as the list of locks has it.
    #[param(value_type = Option<String>, pattern = "^[0-9]+$")]
    fence: Option<u64>,
}

/// The result of a break.
#[derive(Serialize, ToSchema)]
#[schema(as = BrokenLock)]
pub(crate) struct BrokenOut<'a> {
    /// The lock.
    name: &'a str,
}

impl<'a> From<&'a HeldLockView> for HeldLockOut<'a> {
    fn from(lock: &'a HeldLockView) -> HeldLockOut<'a> {
        HeldLockOut {
            name: String::from_utf8_lossy(&lock.name),
            owner: String::from_utf8_lossy(&lock.owner),
            fence: lock.fence.to_string(),
            expires_at: At(lock.expires_at),
            depth: lock.depth,
        }
    }
}

/// Read a page of the locks that are held, those first that expire first.
#[utoipa::path(
    get,
    path = "/v1/locks",
    tag = "locks",
    operation_id = "list_locks",
    params(LocksQuery),
    responses((status = 200, description = "A page", body = LocksOut<'static>), Problems)
)]
pub(super) async fn list(State(app): State<App>, caller: Caller, mut params: Params) -> HttpResult {
    // A cursor holds the name of any lock, so a page is for those who may see all.
    caller.check_verb(Verb::List)?;
    let prefix = Bytes::from(params.text("prefix").unwrap_or_default());
    let cursor = params.text("cursor");
    let limit = params.parsed("limit", "a number")?.unwrap_or(LIMIT_DEFAULT);
    params.finish()?;
    // Pages may be large, so they are made one at a time.
    let _turn = app.pages.acquire().await;
    let page = app.client.call(Locks { prefix, cursor, limit }).await?;
    let locks = page.locks.iter().map(HeldLockOut::from).collect();
    ok(&LocksOut { locks, cursor: page.cursor.as_deref() })
}

/// Free a lock, whoever holds it; the first who waits gets it.
#[utoipa::path(
    delete,
    path = "/v1/locks/{name}",
    tag = "locks",
    operation_id = "break_lock",
    params(NamePath, BreakQuery),
    responses(
        (status = 200, description = "It is broken", body = BrokenOut<'static>),
        Problems, AbsenceProblems, StateProblems
    )
)]
pub(super) async fn break_lock(
    State(app): State<App>,
    caller: Caller,
    InName(name): InName,
    mut params: Params,
) -> HttpResult {
    caller.check(Verb::BreakLock, &name)?;
    let fence = params.parsed("fence", "the number of a grant")?;
    params.finish()?;
    app.client.call(BreakLock { name: Bytes::from(name.clone()), fence }).await?;
    ok(&BrokenOut { name: &name })
}
