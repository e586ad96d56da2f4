//! consumers: who waits for jobs of a topic.

use axum::extract::State;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::list::LIMIT_DEFAULT;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::response::{HttpResult, ok};
use crate::limits::CONSUMERS_LOOKED_AT_MAX;
use crate::units::At;
use crate::visitor::Visitor;

/// Connections that are looked at without a pause.
const PORTION: usize = 1_000;

/// The page to read.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct ConsumersQuery {
    /// The cursor of the previous page.
    cursor: Option<String>,
    /// The largest number of consumers in the page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
}

/// A page of consumers, those first that connected first.
#[derive(Serialize, ToSchema)]
#[schema(as = ConsumersPage)]
pub(crate) struct ConsumersOut {
    consumers: Vec<ConsumerOut>,
    /// The cursor of the next page; absent in the last one. A page may be empty and have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cursor: Option<String>,
}

/// A connection to this server whose reserves wait on the topic.
#[derive(Serialize, ToSchema)]
#[schema(as = Consumer)]
pub(crate) struct ConsumerOut {
    /// Its address; of an IPv6 address the first half.
    address: String,
    /// `http`, `resp` or `beanstalk`.
    protocol: &'static str,
    /// The name of the token of its last request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<String>,
    /// How many of its reserves wait on the topic.
    waiting: usize,
    /// When it connected.
    since: At,
}

impl ConsumerOut {
    fn new(visitor: &Visitor, waiting: usize) -> ConsumerOut {
        ConsumerOut {
            address: visitor.address.to_string(),
            protocol: visitor.protocol.as_str(),
            name: visitor.caller().token.map(|name| name.to_string()),
            waiting,
            since: At(visitor.since),
        }
    }
}

/// Read a page of the connections to this server whose reserves wait on a topic.
#[utoipa::path(
    get,
    path = "/v1/topics/{topic}/consumers",
    tag = "topics",
    params(TopicPath, ConsumersQuery),
    responses((status = 200, description = "A page", body = ConsumersOut), Problems)
)]
pub(super) async fn consumers(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    mut params: Params,
) -> HttpResult {
    caller.check(Verb::Inspect, topic.as_str())?;
    let mut after: u64 = params.parsed("cursor", "the cursor of a page")?.unwrap_or(0);
    let limit = params.limit(LIMIT_DEFAULT)?;
    params.finish()?;
    let (mut consumers, mut is_over) = (Vec::new(), false);
    'pages: for _ in 0..CONSUMERS_LOOKED_AT_MAX / PORTION {
        let page = app.roster.page(after, PORTION);
        for (number, visitor) in &page.visitors {
            if consumers.len() >= limit {
                break 'pages;
            }
            after = *number;
            let waiting = visitor.waiting_on(&topic);
            if waiting > 0 {
                consumers.push(ConsumerOut::new(visitor, waiting));
            }
        }
        if !page.more {
            is_over = true;
            break;
        }
        tokio::task::yield_now().await;
    }
    let cursor = (!is_over).then(|| after.to_string());
    ok(&ConsumersOut { consumers, cursor })
}
