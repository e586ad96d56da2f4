//! One file per verb: it parses the request and writes the response. The rules are the backend's.

mod ack;
mod advance;
mod all_schedules;
mod audit;
mod backup;
mod cancel;
mod change;
mod change_schedule;
mod config;
mod connections;
mod console;
mod consumers;
mod dead;
mod dead_groups;
mod describe;
mod events;
mod explain;
mod extend;
mod forecast;
#[cfg(test)]
mod fuzz;
mod get;
mod get_schedule;
mod health;
mod history;
mod ids;
mod job_routes;
mod kick;
mod kill;
mod lateness;
mod lease;
mod list;
mod lock;
mod locks;
mod many;
mod metrics;
mod nack;
mod pause;
mod preview;
mod pulse;
mod purge;
mod push;
mod put;
mod put_schedule;
mod release;
mod release_topic;
mod remove_schedule;
mod reschedule;
mod reserve;
mod reserve_id;
mod resume;
mod revive;
mod run;
mod run_schedule;
mod schedules;
mod set_topic;
mod stats;
mod topic;
mod topics;
mod whoami;

use axum::Router;
use hyper::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) use get::FoundResults;
pub(super) use ids::ChangedResults;
pub(super) use lease::EndedResults;

use super::App;
use super::measure::measure;
use super::problem::Problem;

/// All paths, with their description.
pub(super) fn routes_with_api() -> OpenApiRouter<App> {
    jobs()
        .merge(leases())
        .merge(topics())
        .merge(locks())
        .merge(schedules())
        .merge(pushes())
        .merge(server())
}

fn jobs() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(put::put, list::list))
        .routes(routes!(get::get_job, cancel::cancel_job, reschedule::reschedule_job))
        .routes(routes!(get::get_key, cancel::cancel_key, reschedule::reschedule_key))
        .routes(routes!(get::get_jobs))
        .routes(routes!(cancel::cancel_jobs))
        .routes(routes!(reschedule::reschedule_jobs))
        .routes(routes!(run::run_jobs))
        .routes(routes!(revive::revive_jobs))
        .routes(routes!(kill::kill_jobs))
        .routes(routes!(run::run_job))
        .routes(routes!(run::run_key))
        .routes(routes!(revive::revive_job))
        .routes(routes!(revive::revive_key))
        .routes(routes!(explain::explain_job))
        .routes(routes!(explain::explain_key))
        .routes(routes!(kill::kill_job))
        .routes(routes!(kill::kill_key))
}

fn leases() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(reserve::reserve_topic))
        .routes(routes!(reserve::reserve))
        .routes(routes!(reserve_id::reserve_id))
        .routes(routes!(ack::ack))
        .routes(routes!(nack::nack))
        .routes(routes!(release::release))
        .routes(routes!(extend::extend))
        .routes(routes!(kill::kill))
        .routes(routes!(events::events))
        .routes(routes!(metrics::metrics))
}

fn topics() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(topics::topics))
        .routes(routes!(topic::topic, set_topic::set_topic, purge::purge))
        .routes(routes!(forecast::forecast))
        .routes(routes!(forecast::forecast_topics))
        .routes(routes!(pause::pause))
        .routes(routes!(resume::resume))
        .routes(routes!(revive::revive_topic))
        .routes(routes!(dead::cancel_dead))
        .routes(routes!(dead_groups::dead_groups))
        .routes(routes!(kick::kick))
        .routes(routes!(release_topic::release_topic))
        .routes(routes!(stats::stats))
}

fn locks() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(locks::list))
        .routes(routes!(locks::break_lock))
        .routes(routes!(lock::acquire))
        .routes(routes!(lock::renew))
        .routes(routes!(lock::unlock))
}

fn schedules() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(preview::preview))
        .routes(routes!(all_schedules::all_schedules))
        .routes(routes!(schedules::schedules))
        .routes(routes!(
            get_schedule::get_schedule,
            put_schedule::put_schedule,
            remove_schedule::remove_schedule
        ))
        .routes(routes!(get_schedule::ticks))
        .routes(routes!(change_schedule::pause_schedule))
        .routes(routes!(change_schedule::resume_schedule))
        .routes(routes!(change_schedule::skip_schedule))
        .routes(routes!(change_schedule::replan_schedule))
        .routes(routes!(run_schedule::run_schedule))
        .routes(routes!(run_schedule::backfill_schedule))
}

fn pushes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(push::get_push, push::put_push, push::remove_push))
        .routes(routes!(push::rotate_push))
        .routes(routes!(push::test_push))
        .routes(routes!(push::resume_push))
}

fn server() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(describe::describe))
        .routes(routes!(whoami::whoami))
        .routes(routes!(pulse::pulse))
        .routes(routes!(history::history))
        .routes(routes!(lateness::lateness))
        .routes(routes!(config::config))
        .routes(routes!(connections::connections))
        .routes(routes!(consumers::consumers))
        .routes(routes!(audit::audit))
        .routes(routes!(backup::backup))
        .routes(routes!(advance::advance))
}

/// All paths.
pub(crate) fn router(app: App) -> Router {
    let (router, _) = routes_with_api().split_for_parts();
    router
        .merge(console::routes(app.ui.mode))
        .fallback(no_path)
        .method_not_allowed_fallback(no_method)
        .layer(axum::middleware::from_fn_with_state(app.clone(), measure))
        .with_state(app)
}

async fn no_path() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "there is nothing at this path; /openapi.json lists all",
    )
}

async fn no_method() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "not_allowed",
        "this path does not take this method; the Allow header lists those it takes",
    )
}
