//! stats: all topics together.

use axum::extract::State;
use dormouse_core::op::Stats;

use crate::access::Verb;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::form::StatsOut;
use crate::http::params::Params;
use crate::http::response::{HttpResult, ok};

/// Read the totals of all topics.
#[utoipa::path(
    get,
    path = "/v1/stats",
    tag = "topics",
    responses((status = 200, description = "The totals", body = StatsOut), Problems)
)]
pub(super) async fn stats(State(app): State<App>, caller: Caller, params: Params) -> HttpResult {
    caller.check_verb(Verb::Stats)?;
    params.finish()?;
    ok(&StatsOut::from(&app.client.call(Stats { topic: None }).await?))
}
