//! connections: who is connected.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::list::LIMIT_DEFAULT;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::response::{HttpResult, ok};
use crate::units::At;
use crate::visitor::Visitor;

/// The page to read.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct ConnectionsQuery {
    /// The cursor of the previous page.
    cursor: Option<String>,
    /// The largest number of connections in the page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
}

/// A page of connections, those first that were opened first.
#[derive(Serialize, ToSchema)]
#[schema(as = ConnectionsPage)]
pub(crate) struct ConnectionsOut {
    connections: Vec<ConnectionOut>,
    /// The number of all connections.
    count: usize,
    /// The cursor of the next page; absent in the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cursor: Option<String>,
}

/// A connection.
#[derive(Serialize, ToSchema)]
#[schema(as = Connection)]
pub(crate) struct ConnectionOut {
    id: String,
    /// `http`, `resp` or `beanstalk`.
    protocol: &'static str,
    /// Its address; of an IPv6 address the first half.
    peer: String,
    /// The name of the token of its last request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    token: Option<String>,
    since: At,
}

impl From<&(u64, Arc<Visitor>)> for ConnectionOut {
    fn from((number, visitor): &(u64, Arc<Visitor>)) -> ConnectionOut {
        ConnectionOut {
            id: number.to_string(),
            protocol: visitor.protocol.as_str(),
            peer: visitor.address.to_string(),
            token: visitor.caller().token.map(|name| name.to_string()),
            since: At(visitor.since),
        }
    }
}

/// Read a page of the connections of all protocols.
#[utoipa::path(
    get,
    path = "/v1/connections",
    tag = "server",
    params(ConnectionsQuery),
    responses((status = 200, description = "A page", body = ConnectionsOut), Problems)
)]
pub(super) async fn connections(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> HttpResult {
    caller.check_verb(Verb::Inspect)?;
    let after = params.parsed("cursor", "the cursor of a page")?.unwrap_or(0);
    let limit = params.limit(LIMIT_DEFAULT)?;
    params.finish()?;
    let page = app.roster.page(after, limit);
    let last = page.visitors.last().filter(|_| page.more);
    ok(&ConnectionsOut {
        connections: page.visitors.iter().map(ConnectionOut::from).collect(),
        count: page.count,
        cursor: last.map(|(number, _)| number.to_string()),
    })
}
