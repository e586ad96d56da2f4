//! kill: make jobs dead.

use axum::extract::State;
use bytes::Bytes;
use dormouse_core::job::Token;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Kill, KillTarget, Target, check};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ids::{ChangedItem, ChangedResults, Ids, IdsRequest, answer_changes, ids_form};
use super::job_routes::job_routes;
use super::lease::{EndedAnswer, EndedCode, LeaseRequest, end, lease_form};
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{
    AbsenceProblems, BodyProblems, EndProblems, IdsProblems, Problems, StateProblems,
};
use crate::http::form::{Bounded, IdOut, TokenOut};
use crate::http::params::Params;
use crate::http::payload::Unread;
use crate::http::response::{HttpResult, ok};

/// Leases whose jobs become dead.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Kill)]
pub(crate) struct KillForm {
    /// The token of one lease.
    #[schema(value_type = Option<TokenOut>)]
    token: Option<String>,
    /// The tokens of several leases.
    #[schema(value_type = Option<Vec<TokenOut>>, max_items = 4096)]
    tokens: Option<Bounded<String, BATCH_MAX>>,
    /// An error text, stored with the job.
    error: Option<String>,
    /// A new priority.
    #[schema(minimum = 0, maximum = 4294967295u32)]
    priority: Option<u32>,
}

lease_form!(KillForm, Verb::Kill);

/// End leases: the jobs are dead, no attempt follows.
#[utoipa::path(
    post,
    path = "/v1/kill",
    tag = "leases",
    request_body = KillForm,
    responses(
        (status = 200, description = "The result of each token", body = EndedAnswer),
        Problems, BodyProblems, EndProblems
    )
)]
pub(super) async fn kill(State(app): State<App>, request: LeaseRequest<KillForm>) -> HttpResult {
    let LeaseRequest { caller, form, tokens, masked } = request;
    // Cut once, here: each item would weigh the whole text.
    let error = form.error.map(|text| check::error_text(Bytes::from(text)));
    let kill = |token: Token| Kill {
        target: KillTarget::Token(token),
        error: error.clone(),
        priority: form.priority,
    };
    end(&app, &caller, &tokens, masked.into_iter().map(kill).collect::<Vec<_>>()).await
}

/// Options of the kill of a waiting job.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = KillJob)]
pub(crate) struct KillJobForm {
    /// An error text, stored with the job.
    error: Option<String>,
    /// A new priority.
    #[schema(minimum = 0, maximum = 4294967295u32)]
    priority: Option<u32>,
}

/// The result of the kill.
#[derive(Serialize, ToSchema)]
#[schema(as = Killed)]
pub(crate) struct KilledOut {
    /// Absent if the job was named by its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    id: Option<IdOut>,
    code: EndedCode,
}

job_routes! {
    post kill_resting(params: Params, body: Unread) if Verb::Kill;
    /// Make a waiting job dead.
    kill_job = "/v1/jobs/{id}/kill";
    /// Make the waiting job that has a key dead.
    kill_key = "/v1/topics/{topic}/keys/{key}/kill";
    params(),
    request_body = Option<KillJobForm>,
    responses(
        (status = 200, description = "The job is dead", body = KilledOut),
        Problems, AbsenceProblems, StateProblems, BodyProblems
    )
}

async fn kill_resting(app: &App, target: Target, params: Params, body: Unread) -> HttpResult {
    params.finish()?;
    let form: KillJobForm = body.json(app).await?;
    let id = match &target {
        Target::Id(id) => Some(IdOut(*id)),
        Target::Key { .. } => None,
    };
    let kill = Kill {
        target: KillTarget::Resting(target),
        error: form.error.map(Bytes::from),
        priority: form.priority,
    };
    let ended = app.client.call(kill).await?;
    ok(&KilledOut { id, code: EndedCode::from(ended) })
}

/// Waiting jobs that become dead.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = KillJobs)]
pub(crate) struct KillJobsForm {
    #[schema(value_type = Vec<IdOut>, min_items = 1, max_items = 1000)]
    ids: Ids,
    /// An error text, stored with each job.
    error: Option<String>,
    /// A new priority.
    #[schema(minimum = 0, maximum = 4294967295u32)]
    priority: Option<u32>,
}

ids_form!(KillJobsForm, Verb::Kill);

/// Make waiting jobs dead.
#[utoipa::path(
    post,
    path = "/v1/jobs/kill",
    tag = "jobs",
    request_body = KillJobsForm,
    responses(
        (status = 200, description = "The result of each id", body = ChangedResults),
        Problems, BodyProblems, IdsProblems
    )
)]
pub(super) async fn kill_jobs(
    State(app): State<App>,
    mut request: IdsRequest<KillJobsForm>,
) -> HttpResult {
    // Cut once, here: each item would weigh the whole text.
    let error = request.form.error.take().map(|text| check::error_text(Bytes::from(text)));
    let priority = request.form.priority;
    let kill =
        |id| Kill { target: KillTarget::Resting(Target::Id(id)), error: error.clone(), priority };
    let kills: Vec<Kill> = request.present().map(kill).collect();
    let replies = app.client.call(kills).await?;
    answer_changes(request.results(replies), |id, ended| {
        ChangedItem::Killed(KilledOut { id: Some(IdOut(id)), code: EndedCode::from(ended) })
    })
}
