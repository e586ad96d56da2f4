//! all_schedules: a page of the schedules of all topics.

use axum::extract::State;
use dormouse_core::error::Error;
use dormouse_core::limits::REPLY_BYTES_MAX;
use dormouse_core::op::{ScheduleState, ScheduleView, Schedules, Topics, check_limit};
use dormouse_core::topic::TopicName;
use utoipa::IntoParams;

use super::list::LIMIT_DEFAULT;
use super::schedules::{SchedulesOut, bytes_of, parse_state};
use super::topics::page_for;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{Problems, SizeProblems};
use crate::http::caller::Caller;
use crate::http::form::{ScheduleOut, ScheduleStateWord};
use crate::http::params::Params;
use crate::http::problem::Problem;
use crate::http::response::{HttpResult, ok};

/// Topics that one page asks for schedules, at most.
const TOPICS_MAX: usize = 100;
/// Pages of single topics that it reads, at most.
const PAGES_MAX: usize = 200;
/// Between the topic and the cursor in it; no name of a topic has it.
const SEPARATOR: char = '~';

/// Which schedules.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct AllSchedulesQuery {
    /// Only those of topics whose names begin with this.
    #[param(max_length = 200)]
    prefix: Option<String>,
    /// Only those in this state.
    #[param(inline)]
    state: Option<ScheduleStateWord>,
    /// The cursor of the previous page.
    cursor: Option<String>,
    /// The largest number of schedules in the page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
}

/// Read a page of the schedules of all topics, by topic, those first that tick first.
///
/// A page looks at a bounded number of topics: it may be empty and not be the last.
#[utoipa::path(
    get,
    path = "/v1/schedules",
    tag = "schedules",
    operation_id = "list_all_schedules",
    params(AllSchedulesQuery),
    responses(
        (status = 200, description = "A page", body = SchedulesOut<'static>),
        Problems, SizeProblems
    )
)]
pub(super) async fn all_schedules(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> HttpResult {
    if !caller.grant().may_somewhere(Verb::List) {
        caller.check_verb(Verb::List)?;
    }
    let state = params.text("state").map(|word| parse_state(&word)).transpose()?;
    let prefix = params.text("prefix").filter(|prefix| !prefix.is_empty());
    let start = params.text("cursor").map(|cursor| Start::read(&cursor)).transpose()?;
    let limit = params.parsed("limit", "a number")?.unwrap_or(LIMIT_DEFAULT);
    params.finish()?;
    check_limit(limit)?;
    if let Some(prefix) = &prefix {
        // A prefix is a name as far as it goes.
        TopicName::new(prefix)?;
    }
    let mut found =
        PageDraft { app: &app, state, limit, pages: 0, bytes: 0, schedules: Vec::new() };
    // Pages may be large, so they are made one at a time.
    let _turn = app.pages.acquire().await;
    let cursor = found.look(&caller, prefix.unwrap_or_default(), start).await?;
    app.answers.room_for(found.bytes)?;
    let schedules = found.schedules.iter().map(ScheduleOut::from).collect();
    ok(&SchedulesOut::new(schedules, cursor.as_deref()))
}

/// Where a page begins: in this topic, or behind it.
struct Start {
    topic: TopicName,
    cursor: Option<String>,
}

impl Start {
    fn read(text: &str) -> Result<Start, Problem> {
        let (topic, cursor) = text.split_once(SEPARATOR).unwrap_or((text, ""));
        let cursor = Some(cursor.to_owned()).filter(|cursor| !cursor.is_empty());
        match TopicName::new(topic) {
            Ok(topic) => Ok(Start { topic, cursor }),
            Err(_) => Err(Problem::malformed("the cursor is none of ours; leave it out")),
        }
    }
}

/// What a page has so far.
struct PageDraft<'a> {
    app: &'a App,
    state: Option<ScheduleState>,
    limit: usize,
    pages: usize,
    bytes: usize,
    schedules: Vec<ScheduleView>,
}

impl PageDraft<'_> {
    /// Fills the page; gives the cursor of the next one, if there may be more.
    async fn look(
        &mut self,
        caller: &Caller,
        prefix: String,
        start: Option<Start>,
    ) -> Result<Option<String>, Error> {
        let mut after = None;
        if let Some(Start { topic, cursor }) = start {
            let may_list = caller.grant().allows(Verb::List, topic.as_str());
            if let Some(cursor) = cursor.filter(|_| may_list)
                && let Some(cursor) = self.look_in(&topic, Some(cursor)).await?
            {
                return Ok(Some(format!("{topic}{SEPARATOR}{cursor}")));
            }
            after = Some(topic);
        }
        // The page may be full by now: the next one begins behind this topic.
        let mut last = after.clone();
        let wanted = Topics { after, limit: TOPICS_MAX };
        let page = page_for(&self.app.client, caller.grant(), wanted, prefix).await?;
        for (topic, _) in page.topics {
            if !self.has_room() {
                return Ok(last.map(|last| last.to_string()));
            }
            if let Some(cursor) = self.look_in(&topic, None).await? {
                return Ok(Some(format!("{topic}{SEPARATOR}{cursor}")));
            }
            last = Some(topic);
        }
        Ok(last.filter(|_| page.more).map(|last| last.to_string()))
    }

    fn has_room(&self) -> bool {
        let has_room = self.schedules.len() < self.limit && self.pages < PAGES_MAX;
        has_room && self.bytes < REPLY_BYTES_MAX as usize
    }

    /// Adds schedules of a topic; gives where it stopped, if it did before their end.
    async fn look_in(
        &mut self,
        topic: &TopicName,
        mut cursor: Option<String>,
    ) -> Result<Option<String>, Error> {
        loop {
            let limit = self.limit - self.schedules.len();
            let (topic, state) = (topic.clone(), self.state);
            let page = self.app.client.call(Schedules { topic, state, cursor, limit }).await?;
            self.pages += 1;
            self.bytes += bytes_of(&page.schedules);
            self.schedules.extend(page.schedules);
            cursor = page.cursor;
            if cursor.is_none() || !self.has_room() {
                return Ok(cursor);
            }
        }
    }
}
