//! topics: a page of topics, of those the caller may see.

use axum::extract::State;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::limits::PAGE_MAX;
use dormouse_core::op::{Topics, TopicsPage};
use dormouse_core::topic::TopicName;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::list::LIMIT_DEFAULT;
use crate::access::{Grant, Verb};
use crate::desk::unexpected;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::form::TopicOut;
use crate::http::params::Params;
use crate::http::reply::{Outcome, ok};

/// Which topics.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct TopicsQuery {
    /// Those after this one in the order of their names.
    after: Option<String>,
    /// At most so many.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
}

/// A page of topics.
#[derive(Serialize, ToSchema)]
#[schema(as = TopicsPage)]
pub(crate) struct TopicsOut<'a> {
    topics: Vec<TopicOut<'a>>,
    /// Where the next page begins, for `after`; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<&'a str>,
}

/// Look at a page of topics.
#[utoipa::path(
    get,
    path = "/v1/topics",
    tag = "topics",
    operation_id = "list_topics",
    params(TopicsQuery),
    responses((status = 200, description = "A page", body = TopicsOut<'static>), Problems)
)]
pub(super) async fn topics(State(app): State<App>, caller: Caller, mut params: Params) -> Outcome {
    if !caller.grant().may_somewhere(Verb::List) {
        caller.check_verb(Verb::List)?;
    }
    let after = params.text("after").map(|name| TopicName::new(&name)).transpose();
    let limit = params.parsed("limit", "a number")?.unwrap_or(LIMIT_DEFAULT);
    params.finish()?;
    let wanted = Topics { after: after?, limit };
    let page = if caller.grant().covers_all(Verb::List) {
        page_of(&app, wanted).await?
    } else {
        page_for(&app, caller.grant(), wanted).await?
    };
    let last = page.topics.last().map(|(name, _)| name.as_str());
    let topics = page.topics.iter().map(|(name, stats)| TopicOut::new(name.as_str(), stats));
    ok(&TopicsOut { topics: topics.collect(), next: last.filter(|_| page.more) })
}

async fn page_of(app: &App, wanted: Topics) -> Result<TopicsPage, Error> {
    match app.desk.ask(Command::Topics(wanted)).await? {
        Reply::Topics(page) => Ok(page),
        other => Err(unexpected(&other)),
    }
}

/// Reads on until there are enough that this caller may see, or there are no more: a page that
/// ended at a topic they may not see would tell its name.
async fn page_for(app: &App, grant: &Grant, wanted: Topics) -> Result<TopicsPage, Error> {
    let Topics { mut after, limit } = wanted;
    let mut seen = TopicsPage { topics: Vec::new(), more: false };
    // The limit is checked where all limits are.
    let mut size = limit;
    loop {
        let page = page_of(app, Topics { after, limit: size }).await?;
        after = page.topics.last().map(|(name, _)| name.clone());
        for topic in page.topics {
            if grant.check(Verb::List, topic.0.as_str()).is_err() {
                continue;
            }
            if seen.topics.len() == limit {
                seen.more = true;
                return Ok(seen);
            }
            seen.topics.push(topic);
        }
        if !page.more || after.is_none() {
            return Ok(seen);
        }
        size = PAGE_MAX;
    }
}
