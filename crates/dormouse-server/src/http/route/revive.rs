//! revive: make one dead job ready, or those of a topic.

use axum::extract::State;
use dormouse_core::command::only;
use dormouse_core::op::{Revive, ReviveTopic, Target};

use super::change::{ChangedCode, ChangedOut, answer_change};
use super::job_routes::job_routes;
use super::many::{CountOut, MaxForm, do_many};
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, BodyProblems, Problems, StateProblems};
use crate::http::caller::Caller;
use crate::http::form::NoFields;
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::payload::Unread;
use crate::http::response::HttpResult;

job_routes! {
    post revive(params: Params, body: Unread) if Verb::Revive;
    /// Make a dead job ready.
    revive_job = "/v1/jobs/{id}/revive";
    /// Make the dead job that has a key ready.
    revive_key = "/v1/topics/{topic}/keys/{key}/revive";
    params(),
    request_body = Option<NoFields>,
    responses(
        (status = 200, description = "The job is ready", body = ChangedOut),
        Problems, AbsenceProblems, StateProblems, BodyProblems
    )
}

async fn revive(app: &App, target: Target, params: Params, body: Unread) -> HttpResult {
    params.finish()?;
    let NoFields {} = body.json(app).await?;
    let changed = only(app.client.call(Revive(vec![target])).await?)?;
    answer_change(ChangedCode::Revived, changed)
}

/// Make dead jobs of a topic ready, the oldest first.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/revive",
    tag = "topics",
    params(TopicPath),
    request_body = Option<MaxForm>,
    responses(
        (status = 200, description = "The number of jobs", body = CountOut),
        Problems, BodyProblems
    )
)]
pub(super) async fn revive_topic(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Revive, topic.as_str())?;
    params.finish()?;
    let form: MaxForm = body.json(&app).await?;
    let revive = |max| ReviveTopic { topic: topic.clone(), max };
    do_many(&app, &caller, &topic, form, |stats| stats.counts.dead, revive).await
}
