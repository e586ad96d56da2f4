//! get: read one job.

use dormouse_core::command::only;
use dormouse_core::op::{Get, Target};

use super::job_routes::job_routes;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, Problems};
use crate::http::form::JobOut;
use crate::http::params::Params;
use crate::http::response::{HttpResult, ok};

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
