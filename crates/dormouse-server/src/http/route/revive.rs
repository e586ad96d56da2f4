//! revive: dead to ready, one job or those of a topic.

use axum::extract::State;
use dormouse_core::command::Command;
use dormouse_core::op::{ReviveTopic, Target};

use super::change::{ChangedCode, ChangedOut, change};
use super::many::{CountOut, MaxForm, do_many};
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{InTheWay, Missing, Problems, Sent};
use crate::http::caller::Caller;
use crate::http::form::NoFields;
use crate::http::params::Params;
use crate::http::path::{IdPath, InJob, InTopic, KeyPath, TopicPath};
use crate::http::payload::Payload;
use crate::http::response::HttpResult;

/// Bring a dead job back.
#[utoipa::path(
    post,
    path = "/v1/jobs/{id}/revive",
    tag = "jobs",
    params(IdPath),
    request_body = Option<NoFields>,
    responses(
        (status = 200, description = "It is ready", body = ChangedOut),
        Problems, Missing, InTheWay, Sent
    )
)]
pub(super) async fn revive_job(
    State(app): State<App>,
    caller: Caller,
    InJob(target): InJob,
    params: Params,
    payload: Payload,
) -> HttpResult {
    revive(&app, &caller, target, params, payload).await
}

/// Bring back the dead job that has a key.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/keys/{key}/revive",
    tag = "jobs",
    params(KeyPath),
    request_body = Option<NoFields>,
    responses(
        (status = 200, description = "It is ready", body = ChangedOut),
        Problems, Missing, InTheWay, Sent
    )
)]
pub(super) async fn revive_key(
    State(app): State<App>,
    caller: Caller,
    InJob(target): InJob,
    params: Params,
    payload: Payload,
) -> HttpResult {
    revive(&app, &caller, target, params, payload).await
}

async fn revive(
    app: &App,
    caller: &Caller,
    target: Target,
    params: Params,
    payload: Payload,
) -> HttpResult {
    caller.check_target(app, Verb::Revive, &target).await?;
    params.finish()?;
    let NoFields {} = payload.json()?;
    change(app, ChangedCode::Revived, Command::Revive(vec![target])).await
}

/// Bring dead jobs of a topic back, the oldest first.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/revive",
    tag = "topics",
    params(TopicPath),
    request_body = Option<MaxForm>,
    responses((status = 200, description = "How many", body = CountOut), Problems, Sent)
)]
pub(super) async fn revive_topic(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
    payload: Payload,
) -> HttpResult {
    caller.check(Verb::Revive, topic.as_str())?;
    params.finish()?;
    let form: MaxForm = payload.json()?;
    drop(payload);
    let command = |max| Command::ReviveTopic(ReviveTopic { topic: topic.clone(), max });
    do_many(&app, &topic, form, |stats| stats.counts.dead, command).await
}
