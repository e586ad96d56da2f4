//! audit: what operators changed.

use axum::extract::State;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::list::LIMIT_DEFAULT;
use crate::access::Verb;
use crate::audit::AuditEntry;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::response::{HttpResult, ok};
use crate::metrics::ProtocolKind;
use crate::units::At;

/// The page to read.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct AuditQuery {
    /// The cursor of the previous page.
    cursor: Option<String>,
    /// The largest number of entries in the page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
}

/// A page of changes by operators, newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditPage)]
pub(crate) struct AuditOut {
    entries: Vec<AuditEntryOut>,
    /// The cursor of the next page; absent in the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cursor: Option<String>,
}

/// A change.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(crate) struct AuditEntryOut {
    /// Counts from the start of the server.
    number: String,
    at: At,
    /// The name of the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    token: Option<String>,
    protocol: &'static str,
    peer: String,
    /// The method and the template of the path.
    call: String,
    /// The path.
    target: String,
    /// Absent if the client left before the answer: it may have happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    status: Option<u16>,
    /// The console sent it.
    ui: bool,
}

impl From<(u64, AuditEntry)> for AuditEntryOut {
    fn from((number, entry): (u64, AuditEntry)) -> AuditEntryOut {
        AuditEntryOut {
            number: number.to_string(),
            at: At(entry.at),
            token: entry.token.map(|name| name.to_string()),
            protocol: ProtocolKind::Http.as_str(),
            peer: entry.peer.to_string(),
            call: entry.call,
            target: entry.target,
            status: entry.status,
            ui: entry.ui,
        }
    }
}

/// Read the last changes by operators, newest first.
#[utoipa::path(
    get,
    path = "/v1/audit",
    tag = "server",
    params(AuditQuery),
    responses((status = 200, description = "A page", body = AuditOut), Problems)
)]
pub(super) async fn audit(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> HttpResult {
    caller.check_verb(Verb::Inspect)?;
    let before = params.parsed("cursor", "the cursor of a page")?;
    let limit = params.limit(LIMIT_DEFAULT)?;
    params.finish()?;
    let (entries, more) = app.audit.page(before, limit);
    let cursor = entries.last().filter(|_| more).map(|(number, _)| number.to_string());
    ok(&AuditOut { entries: entries.into_iter().map(AuditEntryOut::from).collect(), cursor })
}
