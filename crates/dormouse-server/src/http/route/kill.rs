//! kill: to dead.

use axum::extract::State;
use bytes::Bytes;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::Token;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Ended, Kill, KillTarget, Target};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::change::only;
use super::ending::{EndedAnswer, EndedCode, Tokens, end};
use crate::access::Verb;
use crate::client::unexpected;
use crate::http::App;
use crate::http::api::{EndProblems, InTheWay, Missing, Problems, Sent};
use crate::http::caller::Caller;
use crate::http::form::{Bounded, IdOut, TokenOut};
use crate::http::params::Params;
use crate::http::path::{IdPath, InJob, KeyPath};
use crate::http::payload::Payload;
use crate::http::response::{HttpResult, ok};

/// To dead.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Kill)]
pub(crate) struct KillForm {
    /// One lease.
    #[schema(value_type = Option<TokenOut>)]
    token: Option<String>,
    /// Or many.
    #[schema(value_type = Option<Vec<TokenOut>>, max_items = 4096)]
    tokens: Option<Bounded<String, BATCH_MAX>>,
    /// Kept with the job.
    error: Option<String>,
    /// A new priority.
    #[schema(minimum = 0, maximum = 4294967295u32)]
    priority: Option<u32>,
}

/// End leases: the jobs are dead, no attempt follows.
#[utoipa::path(
    post,
    path = "/v1/kill",
    tag = "leases",
    request_body = KillForm,
    responses(
        (status = 200, description = "What became of it", body = EndedAnswer),
        Problems, Sent, EndProblems
    )
)]
pub(super) async fn kill(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    payload: Payload,
) -> HttpResult {
    params.finish()?;
    let form: KillForm = payload.json()?;
    let tokens = Tokens::read(form.token.as_deref(), form.tokens.as_ref())?;
    let granted = tokens.granted(&app, &caller, Verb::Kill).await?;
    let error = form.error.map(Bytes::from);
    let kill = |token: &Token| Kill {
        target: KillTarget::Token(*token),
        error: error.clone(),
        priority: form.priority,
    };
    let command = Command::Kill(granted.iter().map(kill).collect());
    end(&app, &tokens, command).await
}

/// To dead, a job that no worker has.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = KillJob)]
pub(crate) struct KillJobForm {
    /// Kept with the job.
    error: Option<String>,
    /// A new priority.
    #[schema(minimum = 0, maximum = 4294967295u32)]
    priority: Option<u32>,
}

/// What became of a job.
#[derive(Serialize, ToSchema)]
#[schema(as = Killed)]
pub(crate) struct KilledOut {
    /// Absent if the job was named by its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    id: Option<IdOut>,
    code: EndedCode,
}

/// Make a waiting job dead.
#[utoipa::path(
    post,
    path = "/v1/jobs/{id}/kill",
    tag = "jobs",
    params(IdPath),
    request_body = Option<KillJobForm>,
    responses(
        (status = 200, description = "It is dead", body = KilledOut),
        Problems, Missing, InTheWay, Sent
    )
)]
pub(super) async fn kill_job(
    State(app): State<App>,
    caller: Caller,
    InJob(target): InJob,
    params: Params,
    payload: Payload,
) -> HttpResult {
    kill_resting(&app, &caller, target, params, payload).await
}

/// Make the waiting job that has a key dead.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/keys/{key}/kill",
    tag = "jobs",
    params(KeyPath),
    request_body = Option<KillJobForm>,
    responses(
        (status = 200, description = "It is dead", body = KilledOut),
        Problems, Missing, InTheWay, Sent
    )
)]
pub(super) async fn kill_key(
    State(app): State<App>,
    caller: Caller,
    InJob(target): InJob,
    params: Params,
    payload: Payload,
) -> HttpResult {
    kill_resting(&app, &caller, target, params, payload).await
}

async fn kill_resting(
    app: &App,
    caller: &Caller,
    target: Target,
    params: Params,
    payload: Payload,
) -> HttpResult {
    caller.check_target(app, Verb::Kill, &target).await?;
    params.finish()?;
    let form: KillJobForm = payload.json()?;
    let id = match &target {
        Target::Id(id) => Some(IdOut(*id)),
        Target::Key { .. } => None,
    };
    let kill = Kill {
        target: KillTarget::Resting(target),
        error: form.error.map(Bytes::from),
        priority: form.priority,
    };
    let ended: Ended = match app.client.call(Command::Kill(vec![kill])).await? {
        Reply::Ended(items) => only(items)?,
        other => return Err(unexpected(&other).into()),
    };
    ok(&KilledOut { id, code: EndedCode::from(ended) })
}
