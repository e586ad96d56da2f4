//! reserve: take jobs that are due, or wait for them.

use axum::extract::State;
use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{LeasedJob, Reserve};
use hyper::StatusCode;

use crate::access::Verb;
use crate::desk::{Custody, unexpected};
use crate::http::App;
use crate::http::api::{Problems, Sent};
use crate::http::caller::Caller;
use crate::http::form::{JobsOut, ReserveForm, ReserveTopicForm};
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::payload::Payload;
use crate::http::reply::{Outcome, carrying, json};

/// Take jobs of one topic.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/reserve",
    tag = "leases",
    params(TopicPath),
    request_body = Option<ReserveTopicForm>,
    responses(
        (status = 200, description = "Jobs, or none", body = JobsOut<'static>),
        Problems, Sent
    )
)]
pub(super) async fn reserve_topic(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
    payload: Payload,
) -> Outcome {
    params.finish()?;
    caller.check(Verb::Reserve, topic.as_str())?;
    let form: ReserveTopicForm = payload.json()?;
    drop(payload);
    take(&app, form.into_reserve(vec![topic])).await
}

/// Take jobs of several topics.
#[utoipa::path(
    post,
    path = "/v1/reserve",
    tag = "leases",
    request_body = ReserveForm,
    responses(
        (status = 200, description = "Jobs, or none", body = JobsOut<'static>),
        Problems, Sent
    )
)]
pub(super) async fn reserve(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    payload: Payload,
) -> Outcome {
    params.finish()?;
    let form: ReserveForm = payload.json()?;
    drop(payload);
    let reserve = form.into_reserve()?;
    check_reserve(&caller, &reserve)?;
    take(&app, reserve).await
}

/// May they take from all of these?
pub(super) fn check_reserve(
    caller: &Caller,
    reserve: &Reserve,
) -> Result<(), dormouse_core::error::Error> {
    reserve.topics.iter().try_for_each(|topic| caller.check(Verb::Reserve, topic.as_str()))
}

async fn take(app: &App, reserve: Reserve) -> Outcome {
    let reply = app.desk.ask_waiting(Command::Reserve(reserve)).await?;
    answer_jobs(app, &reply)
}

/// Jobs that are given back if they never reach the client.
pub(super) fn answer_jobs(app: &App, reply: &Reply) -> Outcome {
    let custody = Custody::of(&app.desk, reply, None);
    let jobs = jobs_of(app, reply)?;
    app.answers.room_for(bytes_of(jobs))?;
    Ok(carrying(json(StatusCode::OK, &JobsOut::new(jobs)), custody))
}

/// The jobs of a reply, counted as handed out.
pub(super) fn jobs_of<'r>(
    app: &App,
    reply: &'r Reply,
) -> Result<&'r [LeasedJob], dormouse_core::error::Error> {
    match reply {
        Reply::Jobs(jobs) => {
            app.metrics.handed_out(jobs);
            Ok(jobs)
        }
        other => Err(unexpected(other)),
    }
}

/// About what the jobs take as JSON.
pub(super) fn bytes_of(jobs: &[LeasedJob]) -> usize {
    jobs.iter().map(|job| job.body.len() + 512).sum()
}
