//! remove_schedule: a schedule goes; its jobs stay.

use axum::extract::State;
use dormouse_core::op::RemoveSchedule;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, Problems};
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::path::{InSchedule, SchedulePath};
use crate::http::response::{HttpResult, ok};

/// Whether its job goes, too.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct RemoveScheduleQuery {
    /// Its newest job is cancelled, too, if it still lives.
    #[param(default = false)]
    jobs: Option<bool>,
}

/// The result of a removal.
#[derive(Serialize, ToSchema)]
#[schema(as = RemovedSchedule)]
pub(crate) struct RemovedOut<'a> {
    topic: &'a str,
    name: &'a str,
}

/// Remove a schedule. Its jobs stay.
#[utoipa::path(
    delete,
    path = "/v1/topics/{topic}/schedules/{name}",
    tag = "schedules",
    operation_id = "remove_schedule",
    params(SchedulePath, RemoveScheduleQuery),
    responses(
        (status = 200, description = "It is removed", body = RemovedOut<'static>),
        Problems, AbsenceProblems
    )
)]
pub(super) async fn remove_schedule(
    State(app): State<App>,
    caller: Caller,
    InSchedule(topic, name): InSchedule,
    mut params: Params,
) -> HttpResult {
    caller.check(Verb::Schedule, topic.as_str())?;
    let cancel_job = params.flag("jobs")?.unwrap_or(false);
    params.finish()?;
    if cancel_job {
        caller.check(Verb::Cancel, topic.as_str())?;
    }
    let (of, named) = (topic.clone(), name.clone());
    app.client.call(RemoveSchedule { topic: of, name: named, cancel_job }).await?;
    ok(&RemovedOut { topic: topic.as_str(), name: name.as_str() })
}
