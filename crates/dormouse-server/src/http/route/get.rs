//! get: read one job, or many.

use axum::extract::State;
use dormouse_core::command::only;
use dormouse_core::op::{Get, Target};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ids::{IdFailed, Ids, IdsRequest, ids_form};
use super::job_routes::job_routes;
use super::list::bytes_of;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, BodyProblems, FoundProblems, Problems};
use crate::http::form::{IdOut, JobOut, status_of_list};
use crate::http::params::Params;
use crate::http::response::{HttpResult, json, ok};

use hyper::StatusCode;

job_routes! {
    get get(params: Params) if Verb::Get;
    /// Read a job.
    get_job = "/v1/jobs/{id}";
    /// Read the job that has a key.
    get_key = "/v1/topics/{topic}/keys/{key}";
    params(),
    responses(
        (status = 200, description = "The job", body = JobOut<'static>),
        Problems, AbsenceProblems
    )
}

async fn get(app: &App, target: Target, params: Params) -> HttpResult {
    params.finish()?;
    let view = only(app.client.call(Get(vec![target])).await?)?;
    ok(&JobOut::new(&view, true))
}

/// Jobs to read.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = GetJobs)]
pub(crate) struct GetJobsForm {
    #[schema(value_type = Vec<IdOut>, min_items = 1, max_items = 1000)]
    ids: Ids,
    /// Whether the jobs have their bodies; default: true.
    bodies: Option<bool>,
}

ids_form!(GetJobsForm, Verb::Get);

/// The code of a job that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FoundCode {
    /// Here it is.
    Found,
}

/// A job that was read.
#[derive(Serialize, ToSchema)]
#[schema(as = Found)]
pub(crate) struct FoundOut<'a> {
    id: IdOut,
    code: FoundCode,
    job: JobOut<'a>,
}

/// The result of one of several jobs that were to be read.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum FoundItem<'a> {
    /// It was read.
    Found(Box<FoundOut<'a>>),
    /// It failed.
    Failed(IdFailed),
}

/// The results of several jobs, in the order of the request.
#[derive(Serialize, ToSchema)]
pub(crate) struct FoundResults<'a> {
    results: Vec<FoundItem<'a>>,
}

/// Read jobs.
#[utoipa::path(
    post,
    path = "/v1/jobs/get",
    tag = "jobs",
    request_body = GetJobsForm,
    responses(
        (status = 200, description = "The result of each id", body = FoundResults<'static>),
        Problems, BodyProblems, FoundProblems
    )
)]
pub(super) async fn get_jobs(
    State(app): State<App>,
    request: IdsRequest<GetJobsForm>,
) -> HttpResult {
    let bodies = request.form.bodies.unwrap_or(true);
    let targets = request.present().map(Target::Id).collect();
    // Pages may be large, so they are made one at a time.
    let _turn = app.pages.acquire().await;
    let replies = app.client.call(Get(targets)).await?;
    app.answers.room_for(bytes_of(replies.iter().flatten(), bodies))?;
    let replies: Vec<_> = request.results(replies).collect();
    let found = |id, view| FoundOut {
        id: IdOut(id),
        code: FoundCode::Found,
        job: JobOut::new(view, bodies),
    };
    let mut statuses = Vec::with_capacity(replies.len());
    let mut results = Vec::with_capacity(replies.len());
    for (id, reply) in &replies {
        let (item, status) = match reply {
            Ok(view) => (FoundItem::Found(Box::new(found(*id, view))), StatusCode::OK),
            Err(error) => {
                let (failed, status) = IdFailed::new(*id, error.clone());
                (FoundItem::Failed(failed), status)
            }
        };
        results.push(item);
        statuses.push(status);
    }
    Ok(json(status_of_list(&statuses), &FoundResults { results }))
}
