//! topics: a page of the topics that the caller may see.

use axum::extract::State;
use dormouse_core::error::Error;
use dormouse_core::op::{Topics, TopicsPage};
use dormouse_core::topic::TopicName;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::list::LIMIT_DEFAULT;
use crate::access::{Grant, Verb};
use crate::client::BackendClient;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::form::TopicOut;
use crate::http::params::Params;
use crate::http::response::{HttpResult, ok};
use crate::walk::Walk;

/// The page to read.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct TopicsQuery {
    /// Topics after this one in the order of their names.
    after: Option<String>,
    /// The largest number of topics in the page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
}

/// A page of topics.
#[derive(Serialize, ToSchema)]
#[schema(as = TopicsPage)]
pub(crate) struct TopicsOut<'a> {
    topics: Vec<TopicOut<'a>>,
    /// The `after` of the next page; absent in the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<&'a str>,
}

/// Read a page of topics.
#[utoipa::path(
    get,
    path = "/v1/topics",
    tag = "topics",
    operation_id = "list_topics",
    params(TopicsQuery),
    responses((status = 200, description = "A page", body = TopicsOut<'static>), Problems)
)]
pub(super) async fn topics(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> HttpResult {
    if !caller.grant().may_somewhere(Verb::List) {
        caller.check_verb(Verb::List)?;
    }
    let after = params.text("after").map(|name| TopicName::new(&name)).transpose();
    let limit = params.parsed("limit", "a number")?.unwrap_or(LIMIT_DEFAULT);
    params.finish()?;
    // Pages may be large, so they are made one at a time.
    let _turn = app.pages.acquire().await;
    let page = page_for(&app.client, caller.grant(), Topics { after: after?, limit }).await?;
    let last = page.topics.last().map(|(name, _)| name.as_str());
    let topics = page.topics.iter().map(|(name, stats)| TopicOut::new(name.as_str(), stats));
    ok(&TopicsOut { topics: topics.collect(), next: last.filter(|_| page.more) })
}

async fn page_for(
    client: &BackendClient,
    grant: &Grant,
    wanted: Topics,
) -> Result<TopicsPage, Error> {
    let mut walk = Walk::new(wanted)?;
    while let Some(portion) = walk.next(grant) {
        walk.take(grant, client.call(portion).await?);
    }
    Ok(walk.into_page())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use dormouse_core::backend::{Backend, Request, Sink};
    use dormouse_core::command::Command;
    use dormouse_core::limits::PAGE_MAX;
    use dormouse_core::op::Put;
    use dormouse_disk::engine::{Engine, Options};
    use tokio::sync::watch;

    use super::*;
    use crate::access::{Access, TokenEntry, hash_token};
    use crate::walk::PORTION;

    /// An engine, and the pages that were requested of it.
    struct Noted {
        engine: Engine,
        asked: Mutex<Vec<Topics>>,
    }

    impl Backend for Noted {
        fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
            let pages = batch.iter().filter_map(|request| match &request.command {
                Command::Topics(topics) => Some(topics.clone()),
                _ => None,
            });
            self.asked.lock().unwrap().extend(pages);
            self.engine.submit(batch, sink)
        }
    }

    fn name(text: &str) -> TopicName {
        TopicName::new(text).unwrap()
    }

    fn grant(scopes: &[&str]) -> Grant {
        let scopes = scopes.iter().map(|scope| scope.parse().unwrap()).collect();
        let entry = TokenEntry { name: "it".into(), hash: hash_token("it"), scopes };
        Access::new(vec![entry]).unwrap().grant(Some("it")).unwrap()
    }

    async fn over(topics: impl Iterator<Item = String>) -> (Arc<Noted>, BackendClient) {
        let engine = Engine::memory(Options::default());
        let noted = Arc::new(Noted { engine, asked: Mutex::default() });
        // No command here waits, so no stop signal is needed.
        let client = BackendClient::new(
            Arc::clone(&noted) as Arc<dyn Backend>,
            Arc::<crate::metrics::Metrics>::default(),
            watch::channel(false).1,
        );
        let puts: Vec<Put> = topics.map(|topic| Put::new(name(&topic), "x")).collect();
        client.call(puts).await.unwrap();
        (noted, client)
    }

    #[tokio::test]
    async fn large_pages_are_asked_for_in_portions() {
        let (noted, client) = over((0..1_100).map(|number| format!("t{number:04}"))).await;
        let wanted = Topics { after: None, limit: PAGE_MAX };
        let page = page_for(&client, &grant(&["list:*"]), wanted).await.unwrap();
        assert_eq!((page.topics.len(), page.more), (PAGE_MAX, true));
        assert!(noted.asked.lock().unwrap().iter().all(|asked| asked.limit <= PORTION));
        let wanted = Topics { after: Some(name("t0999")), limit: 100 };
        let page = page_for(&client, &grant(&["list:*"]), wanted).await.unwrap();
        assert_eq!((page.topics.len(), page.more), (100, false));
    }

    #[tokio::test]
    async fn topics_of_others_are_not_looked_at() {
        let others = (0..2_000).map(|number| format!("t{number:04}"));
        let own = ["a.1", "t0500.x", "t0500.y", "z"].map(str::to_owned);
        let (noted, client) = over(others.chain(own)).await;
        let grant = grant(&["list:t0500.*", "list:z", "list:b*", "put:*"]);
        for limit in [1, 2, 3, 100] {
            noted.asked.lock().unwrap().clear();
            let mut names = Vec::new();
            let mut after = None;
            loop {
                let page = page_for(&client, &grant, Topics { after, limit }).await.unwrap();
                names.extend(page.topics.iter().map(|(name, _)| name.to_string()));
                after = page.topics.last().map(|(name, _)| name.clone());
                if !page.more {
                    break;
                }
            }
            assert_eq!(names, ["t0500.x", "t0500.y", "z"], "limit {limit}");
            assert!(noted.asked.lock().unwrap().len() <= 9, "limit {limit}");
        }
    }
}
