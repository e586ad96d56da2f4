//! reserve: take jobs that are due, or wait for them.

use axum::extract::State;
use dormouse_core::error::{Code, Error};
use dormouse_core::op::{LeasedJob, Reserve};
use dormouse_core::topic::TopicName;
use hyper::StatusCode;

use crate::access::Verb;
use crate::client::Custody;
use crate::http::App;
use crate::http::api::{BodyProblems, Problems};
use crate::http::caller::Caller;
use crate::http::form::{JobsOut, ReserveForm, ReserveTopicForm, body_json_bytes};
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::payload::Unread;
use crate::http::response::{HttpResult, json, with_custody};

/// The estimated size of a job as JSON without its body.
pub(super) const JOB_BYTES: usize = 512;

/// Take jobs of one topic.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/reserve",
    tag = "leases",
    params(TopicPath),
    request_body = Option<ReserveTopicForm>,
    responses(
        (status = 200, description = "Jobs, or none", body = JobsOut<'static>),
        Problems, BodyProblems
    )
)]
pub(super) async fn reserve_topic(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
    body: Unread,
) -> HttpResult {
    params.finish()?;
    caller.check(Verb::Reserve, topic.as_str())?;
    let form: ReserveTopicForm = body.json(&app).await?;
    let reserve = form.into_reserve(vec![topic]);
    check_reserve(&app, &caller, &reserve)?;
    take(&app, &caller, reserve).await
}

/// Take jobs of several topics.
#[utoipa::path(
    post,
    path = "/v1/reserve",
    tag = "leases",
    request_body = ReserveForm,
    responses(
        (status = 200, description = "Jobs, or none", body = JobsOut<'static>),
        Problems, BodyProblems
    )
)]
pub(super) async fn reserve(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    body: Unread,
) -> HttpResult {
    params.finish()?;
    caller.check_somewhere(Verb::Reserve)?;
    let form: ReserveForm = body.json(&app).await?;
    let reserve = form.into_reserve()?;
    check_reserve(&app, &caller, &reserve)?;
    take(&app, &caller, reserve).await
}

/// Whether the caller may reserve from all these topics, for so long.
pub(super) fn check_reserve(app: &App, caller: &Caller, reserve: &Reserve) -> Result<(), Error> {
    reserve.topics.iter().map(TopicName::as_str).try_for_each(|topic| {
        caller.check(Verb::Reserve, topic)?;
        caller.check_ttr(app, "ttr", reserve.ttr_ms, Some(topic))
    })
}

async fn take(app: &App, caller: &Caller, reserve: Reserve) -> HttpResult {
    answer_jobs(app, caller.call_waiting(app, reserve).await?)
}

/// A response with jobs, which are given back unless the client receives them.
pub(super) fn answer_jobs(app: &App, jobs: Vec<LeasedJob>) -> HttpResult {
    let (jobs, custody) = fitting(app, jobs)?;
    Ok(with_custody(json(StatusCode::OK, &JobsOut::new(&jobs)), custody))
}

/// The jobs that fit into the budget of responses, in custody; the others are given back.
pub(super) fn fitting(
    app: &App,
    mut jobs: Vec<LeasedJob>,
) -> Result<(Vec<LeasedJob>, Custody), Error> {
    let mut left = app.answers.left();
    let fit = jobs.iter().take_while(|job| {
        let bytes = body_json_bytes(job.body_kind, &job.body) + JOB_BYTES;
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    });
    let fit = fit.count();
    if fit < jobs.len() {
        drop(Custody::of_jobs(&app.client, &jobs.split_off(fit)));
        if jobs.is_empty() {
            let text = "clients have too many answers to read; the job is ready again, try again";
            return Err(Error::new(Code::Busy, text));
        }
    }
    let custody = Custody::of_jobs(&app.client, &jobs);
    Ok((jobs, custody))
}
