//! Health: is the process alive, does the store take work.

use std::time::Duration;

use axum::extract::State;
use dormouse_core::error::Error;
use dormouse_core::op::Get;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::App;
use crate::http::api::{Guarded, NotReady};
use crate::http::response::{HttpResult, ok};

/// How long the store may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// All is well.
#[derive(Serialize, ToSchema)]
#[schema(as = Health)]
pub(crate) struct HealthOut {
    code: HealthCode,
}

/// Always this.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HealthCode {
    /// All is well.
    Ok,
}

/// Is the process alive?
#[utoipa::path(
    get,
    path = "/livez",
    tag = "server",
    security(()),
    responses((status = 200, description = "It runs", body = HealthOut), Guarded)
)]
pub(super) async fn livez() -> HttpResult {
    ok(&HealthOut { code: HealthCode::Ok })
}

/// Does the store take work?
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "server",
    security(()),
    responses((status = 200, description = "It does", body = HealthOut), Guarded, NotReady)
)]
pub(super) async fn readyz(State(app): State<App>) -> HttpResult {
    if app.client.is_stopping() {
        return Err(Error::unavailable("the server is stopping; use another, or try again").into());
    }
    // An empty request: any reply shows that the store works.
    match tokio::time::timeout(TIMEOUT, app.client.call(Get(Vec::new()))).await {
        Ok(Ok(_)) => ok(&HealthOut { code: HealthCode::Ok }),
        Ok(Err(error)) => {
            Err(Error::unavailable(format!("the store does not answer: {}", error.text)).into())
        }
        Err(_) => Err(Error::unavailable("the store did not answer in 2 s; try again").into()),
    }
}
