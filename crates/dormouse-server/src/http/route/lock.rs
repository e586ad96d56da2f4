//! Locks: acquire, renew, release. Scopes name locks like topics.

use axum::extract::State;
use bytes::Bytes;
use dormouse_core::op::{Lock, LockReply, RenewLock, Unlock};
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Verb;
use crate::client::Custody;
use crate::http::App;
use crate::http::api::{AbsenceProblems, BodyProblems, Problems, StateProblems};
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::path::{InName, NamePath};
use crate::http::payload::Unread;
use crate::http::response::{HttpResult, json, ok, with_custody};
use crate::units::{At, SpanMs};

/// The default duration of a lock.
const TTL_MS_DEFAULT: i64 = 30_000;

/// Acquire a lock.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AcquireLock)]
pub(crate) struct AcquireForm {
    /// The name of the owner, who may acquire it again.
    #[schema(min_length = 1, max_length = 200)]
    owner: String,
    /// How long it is held unless renewed; default: 30 s.
    ttl: Option<SpanMs>,
    /// How long to wait for it, at most 60 s.
    wait: Option<SpanMs>,
}

/// Prolong a lock.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RenewLock)]
pub(crate) struct RenewForm {
    /// The name of the owner.
    #[schema(min_length = 1, max_length = 200)]
    owner: String,
    /// Time until it expires; default: the ttl of the acquire.
    ttl: Option<SpanMs>,
}

/// Release a lock.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReleaseLock)]
pub(crate) struct UnlockForm {
    /// The name of the owner.
    #[schema(min_length = 1, max_length = 200)]
    owner: String,
}

/// A lock that is held.
#[derive(Serialize, ToSchema)]
#[schema(as = Lock)]
pub(crate) struct LockOut {
    /// Grows with every grant; pass it to the resource that the lock protects.
    #[schema(pattern = "^[0-9]+$")]
    fence: String,
    /// When it expires unless renewed.
    expires_at: At,
    /// The number of releases until it is free.
    depth: u32,
}

impl From<&LockReply> for LockOut {
    fn from(reply: &LockReply) -> LockOut {
        LockOut {
            fence: reply.fence.to_string(),
            expires_at: At(reply.expires_at),
            depth: reply.depth,
        }
    }
}

/// Whether a lock is free.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ReleasedLockCode)]
pub(crate) enum UnlockedCode {
    /// Free now.
    Free,
    /// An outer acquire of the same owner still holds it.
    Held,
}

/// The state of a lock after a release.
#[derive(Serialize, ToSchema)]
#[schema(as = ReleasedLock)]
pub(crate) struct UnlockedOut {
    code: UnlockedCode,
}

/// Acquire a lock, or wait for it.
#[utoipa::path(
    post,
    path = "/v1/locks/{name}/acquire",
    tag = "locks",
    operation_id = "acquire_lock",
    params(NamePath),
    request_body = AcquireForm,
    responses(
        (status = 200, description = "The owner holds the lock", body = LockOut),
        Problems, StateProblems, BodyProblems
    )
)]
pub(super) async fn acquire(
    State(app): State<App>,
    caller: Caller,
    InName(name): InName,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Lock, &name)?;
    params.finish()?;
    let form: AcquireForm = body.json(&app).await?;
    let (lock_name, owner) = (Bytes::from(name.clone()), Bytes::from(form.owner));
    let unlock = Unlock { name: lock_name.clone(), owner: owner.clone() };
    let lock = Lock {
        name: lock_name,
        owner,
        ttl_ms: form.ttl.map_or(TTL_MS_DEFAULT, |ttl| ttl.0),
        wait_ms: form.wait.map_or(0, |wait| wait.0),
    };
    caller.check_ttr(&app, "ttl", Some(lock.ttl_ms), Some(&name))?;
    let held = caller.call_waiting(&app, lock).await;
    let held = held.map_err(|refusal| caller.grant().lock_refusal(&name, refusal))?;
    let custody = Custody::of_lock(&app.client, unlock);
    Ok(with_custody(json(StatusCode::OK, &LockOut::from(&held)), custody))
}

/// Prolong a lock.
#[utoipa::path(
    post,
    path = "/v1/locks/{name}/renew",
    tag = "locks",
    operation_id = "renew_lock",
    params(NamePath),
    request_body = RenewForm,
    responses(
        (status = 200, description = "The owner holds the lock", body = LockOut),
        Problems, AbsenceProblems, StateProblems, BodyProblems
    )
)]
pub(super) async fn renew(
    State(app): State<App>,
    caller: Caller,
    InName(name): InName,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Lock, &name)?;
    params.finish()?;
    let form: RenewForm = body.json(&app).await?;
    let renew = RenewLock {
        name: Bytes::from(name.clone()),
        owner: Bytes::from(form.owner),
        ttl_ms: form.ttl.map(|ttl| ttl.0),
    };
    caller.check_ttr(&app, "ttl", renew.ttl_ms, Some(&name))?;
    let held = caller.call(&app, renew).await;
    let held = held.map_err(|refusal| caller.grant().lock_refusal(&name, refusal))?;
    ok(&LockOut::from(&held))
}

/// Release a lock, once for each acquire.
#[utoipa::path(
    post,
    path = "/v1/locks/{name}/release",
    tag = "locks",
    operation_id = "release_lock",
    params(NamePath),
    request_body = UnlockForm,
    responses(
        (status = 200, description = "Released", body = UnlockedOut),
        Problems, AbsenceProblems, StateProblems, BodyProblems
    )
)]
pub(super) async fn unlock(
    State(app): State<App>,
    caller: Caller,
    InName(name): InName,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Lock, &name)?;
    params.finish()?;
    let form: UnlockForm = body.json(&app).await?;
    let unlock = Unlock { name: Bytes::from(name.clone()), owner: Bytes::from(form.owner) };
    let is_free = app.client.call(unlock).await;
    let is_free = is_free.map_err(|refusal| caller.grant().lock_refusal(&name, refusal))?;
    ok(&UnlockedOut { code: if is_free { UnlockedCode::Free } else { UnlockedCode::Held } })
}
