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
use crate::http::problem::Problem;
use crate::http::response::{HttpResult, ok};
use crate::limits::RANKED_MAX;
use crate::ranking::Respect;
use crate::units::At;
use crate::walk::Walk;

/// Topics of a sorted page that are read at once.
const SORTED_PORTION: usize = 10;

/// The page to read.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct TopicsQuery {
    /// Topics after this one in the order of their names.
    after: Option<String>,
    /// Topics whose names begin so.
    #[param(max_length = 200)]
    prefix: Option<String>,
    /// The order: by name, or the largest of these first.
    #[param(inline)]
    sort: Option<TopicSort>,
    /// The largest number of topics in the page; if it is sorted by a count, 100.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
}

/// Orders of topics.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "describes the query")]
pub(crate) enum TopicSort {
    /// By name.
    Name,
    /// Jobs that are due.
    Ready,
    /// Dead jobs.
    Dead,
    /// Jobs that are due or not.
    Waiting,
    /// How long the oldest ready job is late.
    Oldest,
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
    /// If sorted by a count: when the oldest of the figures that were compared was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    as_of: Option<At>,
    /// If sorted by a count: how many topics were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    looked_at: Option<u64>,
    /// If sorted by a count: whether these are all that there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    complete: Option<bool>,
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
    let prefix = params.text("prefix").unwrap_or_default();
    let sort = params.text("sort");
    let limit = params.parsed("limit", "a number")?.unwrap_or(LIMIT_DEFAULT);
    params.finish()?;
    if !prefix.is_empty() {
        TopicName::new(&prefix)?;
    }
    let wanted = Topics { after: after?, limit };
    if let Some(respect) = respect_of(sort.as_deref())? {
        return sorted(&app, &caller, respect, &prefix, &wanted).await;
    }
    // Pages may be large, so they are made one at a time.
    let _turn = app.pages.acquire().await;
    let page = page_for(&app.client, caller.grant(), wanted, prefix).await?;
    let last = page.topics.last().map(|(name, _)| name.as_str());
    let topics = page.topics.iter().map(|(name, stats)| TopicOut::new(name.as_str(), stats));
    let next = last.filter(|_| page.more);
    ok(&TopicsOut { topics: topics.collect(), next, as_of: None, looked_at: None, complete: None })
}

/// What a page is sorted by; `None` = by name.
fn respect_of(sort: Option<&str>) -> Result<Option<Respect>, Problem> {
    Ok(match sort {
        None | Some("name") => None,
        Some("ready") => Some(Respect::Ready),
        Some("dead") => Some(Respect::Dead),
        Some("waiting") => Some(Respect::Waiting),
        Some("oldest") => Some(Respect::Oldest),
        Some(other) => {
            let text = format!("sort is {other:?}; give name, ready, dead, waiting or oldest");
            return Err(Problem::malformed(text));
        }
    })
}

/// The worst topics. The survey chooses them; their figures are read now.
async fn sorted(
    app: &App,
    caller: &Caller,
    respect: Respect,
    prefix: &str,
    wanted: &Topics,
) -> HttpResult {
    if wanted.after.is_some() {
        return Err(Problem::malformed("after goes with sort=name; a sorted page is the first"));
    }
    if wanted.limit == 0 || wanted.limit > RANKED_MAX {
        let limit = wanted.limit;
        let text = format!("limit is {limit}; give 1 to {RANKED_MAX} where sort is a count");
        return Err(Error::invalid(text).into());
    }
    let may_see = |topic: &str| caller.grant().allows(Verb::List, topic);
    let chosen = app.ranking.worst(respect, prefix, wanted.limit, may_see).await;
    caller.judge(app)?;
    let mut topics = Vec::with_capacity(chosen.names.len());
    for names in chosen.names.chunks(SORTED_PORTION) {
        topics.extend(app.client.stats_of(names).await?);
    }
    topics.sort_by(|(name, stats), (other, than)| {
        respect.of(than).cmp(&respect.of(stats)).then_with(|| name.cmp(other))
    });
    let age_ms = u64::try_from(chosen.age.as_millis()).unwrap_or(u64::MAX);
    let as_of = app.now_ms().await?.saturating_sub(age_ms);
    let topics = topics.iter().map(|(name, stats)| TopicOut::new(name.as_str(), stats));
    ok(&TopicsOut {
        topics: topics.collect(),
        next: None,
        as_of: Some(At(as_of)),
        looked_at: Some(chosen.looked_at as u64),
        complete: Some(chosen.is_complete),
    })
}

pub(super) async fn page_for(
    client: &BackendClient,
    grant: &Grant,
    wanted: Topics,
    prefix: String,
) -> Result<TopicsPage, Error> {
    let mut walk = Walk::new(wanted)?.with_prefix(prefix);
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
        let page = page_for(&client, &grant(&["list:*"]), wanted, String::new()).await.unwrap();
        assert_eq!((page.topics.len(), page.more), (PAGE_MAX, true));
        assert!(noted.asked.lock().unwrap().iter().all(|asked| asked.limit <= PORTION));
        let wanted = Topics { after: Some(name("t0999")), limit: 100 };
        let page = page_for(&client, &grant(&["list:*"]), wanted, String::new()).await.unwrap();
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
                let page = page_for(&client, &grant, Topics { after, limit }, String::new())
                    .await
                    .unwrap();
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
    #[tokio::test]
    async fn a_prefix_is_a_seek() {
        let others = (0..2_000).map(|number| format!("t{number:04}"));
        let own = ["t0500.x", "t0500.y", "t0500x"].map(str::to_owned);
        let (noted, client) = over(others.chain(own)).await;
        let check =
            async |scopes: &[&str], prefix: &str, after: Option<&str>, expected: &[&str]| {
                noted.asked.lock().unwrap().clear();
                let wanted = Topics { after: after.map(name), limit: 20 };
                let page =
                    page_for(&client, &grant(scopes), wanted, prefix.to_owned()).await.unwrap();
                let names: Vec<_> = page.topics.iter().map(|(name, _)| name.as_str()).collect();
                assert_eq!((names, page.more), (expected.to_vec(), false), "{prefix} {after:?}");
                assert!(noted.asked.lock().unwrap().len() <= 2, "{prefix} {after:?}");
            };
        let all = &["list:*"];
        check(all, "t0500", None, &["t0500", "t0500.x", "t0500.y", "t0500x"]).await;
        check(all, "t0500.", None, &["t0500.x", "t0500.y"]).await;
        check(all, "t0500", Some("t0500.x"), &["t0500.y", "t0500x"]).await;
        check(all, "t0500", Some("a"), &["t0500", "t0500.x", "t0500.y", "t0500x"]).await;
        check(all, "t0500", Some("u"), &[]).await;
        check(all, "zz", None, &[]).await;
        check(&["list:t0500.*"], "t05", None, &["t0500.x", "t0500.y"]).await;
        check(&["list:a*"], "t05", None, &[]).await;
        check(&["list:u*"], "t05", None, &[]).await;
        let wanted = Topics { after: None, limit: 2 };
        let page = page_for(&client, &grant(all), wanted, "t19".to_owned()).await.unwrap();
        assert_eq!((page.topics.len(), page.more), (2, true));
    }
}
