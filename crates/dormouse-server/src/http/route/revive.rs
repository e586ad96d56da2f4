//! revive: make one dead job ready, or many, or those of a topic.

use axum::extract::State;
use dormouse_core::command::only;
use dormouse_core::op::{Revive, ReviveTopic, Target};
use serde::Deserialize;
use utoipa::ToSchema;

use super::change::{ChangedCode, ChangedOut, answer_change};
use super::dead::{DeadForm, DeadOut, Fate, sweep};
use super::ids::{ChangedResults, Ids, IdsRequest, answer_code, ids_form};
use super::job_routes::job_routes;
use super::many::do_many;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, BodyProblems, IdsProblems, Problems, StateProblems};
use crate::http::caller::Caller;
use crate::http::form::{IdOut, NoFields};
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

/// Jobs, by their ids.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReviveJobs)]
pub(crate) struct ReviveJobsForm {
    #[schema(value_type = Vec<IdOut>, min_items = 1, max_items = 1000)]
    ids: Ids,
}

ids_form!(ReviveJobsForm, Verb::Revive);

/// Make dead jobs ready.
#[utoipa::path(
    post,
    path = "/v1/jobs/revive",
    tag = "jobs",
    request_body = ReviveJobsForm,
    responses(
        (status = 200, description = "The result of each id", body = ChangedResults),
        Problems, BodyProblems, IdsProblems
    )
)]
pub(super) async fn revive_jobs(
    State(app): State<App>,
    request: IdsRequest<ReviveJobsForm>,
) -> HttpResult {
    let targets = request.present().map(Target::Id).collect();
    let replies = app.client.call(Revive(targets)).await?;
    answer_code(ChangedCode::Revived, request.results(replies))
}

/// Make dead jobs of a topic ready, the oldest first.
///
/// With a filter, a request looks at up to 10,000 jobs and 64 MiB; as long as there is a `cursor`
/// in the response, send it to go on.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/revive",
    tag = "topics",
    params(TopicPath),
    request_body = Option<DeadForm>,
    responses(
        (status = 200, description = "The number of jobs", body = DeadOut),
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
    let form: DeadForm = body.json(&app).await?;
    if form.is_filtered() {
        return sweep(&app, &caller, topic, form, Fate::Revive).await;
    }
    let revive = |max| ReviveTopic { topic: topic.clone(), max };
    do_many(&app, &caller, &topic, form.max, |stats| stats.counts.dead, revive).await
}
