//! Health: whether the process runs, and whether the store accepts requests.

use std::time::Duration;

use axum::extract::State;
use dormouse_core::error::Error;
use dormouse_core::op::Get;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::App;
use crate::http::api::{GuardProblems, ReadyProblems};
use crate::http::response::{HttpResult, ok};

/// Time for the store to reply.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A healthy server.
#[derive(Serialize, ToSchema)]
#[schema(as = Health)]
pub(crate) struct HealthOut {
    code: HealthCode,
    /// What an operator should look at though requests are accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    detail: Option<String>,
}

/// The only code: problems have others.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HealthCode {
    /// Healthy.
    Ok,
}

/// Check that the process runs.
#[utoipa::path(
    get,
    path = "/livez",
    tag = "server",
    security(()),
    responses((status = 200, description = "The process runs", body = HealthOut), GuardProblems)
)]
pub(super) async fn livez() -> HttpResult {
    ok(&HealthOut { code: HealthCode::Ok, detail: None })
}

/// Check that the store accepts requests.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "server",
    security(()),
    responses(
        (status = 200, description = "The store accepts requests", body = HealthOut),
        GuardProblems, ReadyProblems
    )
)]
pub(super) async fn readyz(State(app): State<App>) -> HttpResult {
    if app.client.is_stopping() {
        return Err(Error::unavailable("the server is stopping; use another, or try again").into());
    }
    // An empty request: any reply shows that the store works.
    match tokio::time::timeout(TIMEOUT, app.client.call(Get(Vec::new()))).await {
        Ok(Ok(_)) => {
            let detail = app.client.backend().concern();
            ok(&HealthOut { code: HealthCode::Ok, detail })
        }
        Ok(Err(error)) => {
            Err(Error::unavailable(format!("the store does not answer: {}", error.text)).into())
        }
        Err(_) => Err(Error::unavailable("the store did not answer in 2 s; try again").into()),
    }
}
