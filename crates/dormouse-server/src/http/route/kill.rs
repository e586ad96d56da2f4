//! kill: to dead.

use axum::extract::State;
use bytes::Bytes;
use dormouse_core::command::Command;
use dormouse_core::job::Token;
use dormouse_core::op::{Kill, KillTarget};
use serde::Deserialize;
use utoipa::ToSchema;

use super::ending::{EndedItem, EndedOut, Tokens, end};
use crate::access::Verb;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::form::Results;
use crate::http::params::Params;
use crate::http::payload::Payload;
use crate::http::reply::Outcome;

/// To dead.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KillForm {
    /// One lease.
    token: Option<String>,
    /// Or many.
    tokens: Option<Vec<String>>,
    /// Kept with the job.
    error: Option<String>,
    /// A new priority.
    priority: Option<u32>,
}

/// The answer: one lease, or many.
#[derive(serde::Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes the answer")]
pub(crate) enum KillOut {
    /// To `token`.
    One(EndedOut),
    /// To `tokens`.
    Many(Results<EndedItem>),
}

/// End leases: the jobs are dead, no attempt follows.
#[utoipa::path(
    post,
    path = "/v1/kill",
    tag = "leases",
    request_body = KillForm,
    responses((status = 200, description = "What became of it", body = KillOut), Problems)
)]
pub(super) async fn kill(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    payload: Payload,
) -> Outcome {
    params.finish()?;
    let form: KillForm = payload.json()?;
    let tokens = Tokens::read(form.token.as_deref(), form.tokens.as_deref())?;
    tokens.check(&app, &caller, Verb::Kill).await?;
    let error = form.error.map(Bytes::from);
    let kill = |token: &Token| Kill {
        target: KillTarget::Token(*token),
        error: error.clone(),
        priority: form.priority,
    };
    let command = Command::Kill(tokens.tokens.iter().map(kill).collect());
    end(&app, &tokens, command).await
}
