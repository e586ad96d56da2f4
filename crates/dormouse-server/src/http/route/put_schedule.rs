//! put_schedule: define a schedule, or change it.

use axum::extract::State;
use dormouse_core::schedule::ScheduleName;
use dormouse_core::topic::TopicName;
use hyper::StatusCode;

use crate::access::Verb;
use crate::http::App;
use crate::http::api::{BodyProblems, Problems, PutProblems, StateProblems};
use crate::http::caller::Caller;
use crate::http::form::{PutScheduleOut, ScheduleCode, ScheduleForm};
use crate::http::params::Params;
use crate::http::path::{InSchedule, SchedulePath};
use crate::http::payload::{Unread, check_object};
use crate::http::problem::Problem;
use crate::http::response::{HttpResult, json};

/// Define a schedule. The same definition again changes nothing.
#[utoipa::path(
    put,
    path = "/v1/topics/{topic}/schedules/{name}",
    tag = "schedules",
    operation_id = "put_schedule",
    params(SchedulePath),
    request_body = ScheduleForm<'static>,
    responses(
        (status = 201, description = "Created", body = PutScheduleOut<'static>),
        (status = 200, description = "Replaced, unchanged or kept", body = PutScheduleOut<'static>),
        Problems, BodyProblems, PutProblems, StateProblems
    )
)]
pub(super) async fn put_schedule(
    State(app): State<App>,
    caller: Caller,
    InSchedule(topic, name): InSchedule,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Schedule, topic.as_str())?;
    params.finish()?;
    let payload = body.read(&app).await?;
    let put = read(topic.clone(), name.clone(), &payload.bytes)?;
    caller.check_ttr(&app, "ttr", put.template.ttr_ms, Some(topic.as_str()))?;
    let reply = app.client.call(put).await?;
    let out = PutScheduleOut::new(topic.as_str(), name.as_str(), &reply);
    let is_new = out.code == ScheduleCode::Created;
    Ok(json(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &out))
}

fn read(
    topic: TopicName,
    name: ScheduleName,
    source: &bytes::Bytes,
) -> Result<dormouse_core::op::PutSchedule, Problem> {
    check_object(source).map_err(Problem::malformed)?;
    let form: ScheduleForm<'_> = serde_json::from_slice(source).map_err(|error| {
        let text = format!("the body cannot be read: {error}; docs/schedules.md has the fields");
        Problem::malformed(text)
    })?;
    form.into_put(topic, name, source).map_err(Problem::malformed)
}
