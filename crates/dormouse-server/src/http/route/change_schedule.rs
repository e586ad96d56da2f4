//! change_schedule: pause, resume, skip and replan.

use axum::extract::State;
use dormouse_core::op::{ChangeSchedule, ScheduleChange};

use super::pause::PauseForm;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, BodyProblems, Problems, StateProblems};
use crate::http::caller::Caller;
use crate::http::form::{NoFields, ScheduleOut};
use crate::http::params::Params;
use crate::http::path::{InSchedule, SchedulePath};
use crate::http::payload::Unread;
use crate::http::response::{HttpResult, ok};

/// Pause a schedule: no ticks, and none of them later.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/schedules/{name}/pause",
    tag = "schedules",
    operation_id = "pause_schedule",
    params(SchedulePath),
    request_body = Option<PauseForm>,
    responses(
        (status = 200, description = "Paused", body = ScheduleOut<'static>),
        Problems, AbsenceProblems, BodyProblems
    )
)]
pub(super) async fn pause_schedule(
    State(app): State<App>,
    caller: Caller,
    schedule: InSchedule,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Schedule, schedule.0.as_str())?;
    params.finish()?;
    let form: PauseForm = body.json(&app).await?;
    change(&app, schedule, ScheduleChange::Pause { for_ms: form.for_ms() }).await
}

/// Declares calls without fields that change a schedule.
macro_rules! changes {
    ($($(#[$text:meta])* $name:ident = $path:literal, $id:literal, $change:expr;)+) => {$(
        $(#[$text])*
        #[utoipa::path(
            post,
            path = $path,
            tag = "schedules",
            operation_id = $id,
            params(SchedulePath),
            request_body = Option<NoFields>,
            responses(
                (status = 200, description = "The schedule", body = ScheduleOut<'static>),
                Problems, AbsenceProblems, BodyProblems, StateProblems
            )
        )]
        pub(super) async fn $name(
            State(app): State<App>,
            caller: Caller,
            schedule: InSchedule,
            params: Params,
            body: Unread,
        ) -> HttpResult {
            caller.check(Verb::Schedule, schedule.0.as_str())?;
            params.finish()?;
            let NoFields {} = body.json(&app).await?;
            change(&app, schedule, $change).await
        }
    )+};
}

changes! {
    /// End the pause of a schedule.
    resume_schedule = "/v1/topics/{topic}/schedules/{name}/resume", "resume_schedule",
        ScheduleChange::Resume;
    /// Leave out the next tick of a schedule.
    skip_schedule = "/v1/topics/{topic}/schedules/{name}/skip", "skip_schedule",
        ScheduleChange::Skip;
    /// Let the next tick of a schedule be the first after now.
    replan_schedule = "/v1/topics/{topic}/schedules/{name}/replan", "replan_schedule",
        ScheduleChange::Replan;
}

async fn change(
    app: &App,
    InSchedule(topic, name): InSchedule,
    change: ScheduleChange,
) -> HttpResult {
    let view = app.client.call(ChangeSchedule { topic, name, change }).await?;
    ok(&ScheduleOut::from(&view))
}
