//! Jobs as they come: leased, or only looked at.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::{BodyKind, Content, Job, JobId, Progress, TickOrigin, Token};
use dormouse_core::op::{HeldBy, JobView, LeasedJob, Page};
use dormouse_core::schedule::ScheduleName;
use dormouse_core::topic::TopicName;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::item::state;
use super::time::At;
use super::topic::BackoffIn;
use dormouse_client::codec::text::find_word;

/// The answer to a reserve.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobsIn {
    jobs: Vec<LeasedIn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LeasedIn {
    topic: String,
    id: String,
    key: Option<String>,
    key_base64: Option<String>,
    token: String,
    attempt: u32,
    due_at: At,
    put_at: At,
    late_ms: u64,
    expires_at: At,
    ttr_ms: u64,
    priority: u32,
    expires_after_ms: u64,
    group: Option<String>,
    group_base64: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    schedule: Option<String>,
    tick: Option<At>,
    ticks_missed: Option<u64>,
    #[serde(default, deserialize_with = "present")]
    body: Option<Box<RawValue>>,
    text: Option<String>,
    base64: Option<String>,
}

/// A job that was looked at.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ViewIn {
    topic: String,
    id: String,
    key: Option<String>,
    key_base64: Option<String>,
    state: String,
    held_by: Option<String>,
    due_at: At,
    put_at: At,
    priority: u32,
    ttr_ms: u64,
    attempts: u32,
    attempts_max: u32,
    key_ttl_ms: u64,
    expires_after_ms: u64,
    backoff: Option<BackoffIn>,
    reserves: u32,
    expiries: u32,
    releases: u32,
    kills: u32,
    kicks: u32,
    error: Option<String>,
    group: Option<String>,
    group_base64: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    schedule: Option<String>,
    tick: Option<At>,
    ticks_missed: Option<u64>,
    #[serde(default, deserialize_with = "present")]
    body: Option<Box<RawValue>>,
    text: Option<String>,
    base64: Option<String>,
}

/// A page of jobs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageIn {
    jobs: Vec<ViewIn>,
    cursor: Option<String>,
}

/// A `null` body is a body; an absent one is not.
pub(super) fn present<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

pub(super) fn lacks(what: &str, id: &str) -> Error {
    Error::unavailable(format!("the server broke its contract: {what} of job {id}"))
}

fn bytes_of(base64: &str) -> Result<Bytes, Error> {
    let bytes = STANDARD.decode(base64).map_err(|_| lacks("bad base64", "?"))?;
    // Text must not be sent as base64.
    match std::str::from_utf8(&bytes) {
        Ok(text) => Err(lacks("text in base64", text)),
        Err(_) => Ok(Bytes::from(bytes)),
    }
}

/// A key or a group.
fn name_of(name: Option<String>, base64: Option<String>) -> Result<Option<Bytes>, Error> {
    match (name, base64) {
        (Some(name), Some(_)) => Err(lacks("two forms of one name", &name)),
        (Some(name), None) => Ok(Some(Bytes::from(name))),
        (None, base64) => base64.as_deref().map(bytes_of).transpose(),
    }
}

fn held_by_of(word: Option<&str>) -> Result<Option<HeldBy>, Error> {
    let find = |word| find_word(HeldBy::ALL, HeldBy::as_str, word);
    word.map(|word| find(word).ok_or_else(|| lacks("no limit", word))).transpose()
}

pub(super) fn body_of(
    id: &str,
    body: Option<Box<RawValue>>,
    text: Option<String>,
    base64: Option<String>,
) -> Result<(Bytes, BodyKind), Error> {
    match (body, text, base64) {
        (Some(json), None, None) => Ok((Bytes::from(json.get().to_owned()), BodyKind::Json)),
        (None, Some(text), None) => Ok((Bytes::from(text), BodyKind::Text)),
        (None, None, Some(base64)) => Ok((bytes_of(&base64)?, BodyKind::Bytes)),
        _ => Err(lacks("not one body", id)),
    }
}

pub(super) type Headers = Option<Arc<Vec<(String, String)>>>;

pub(super) fn headers_of(headers: Option<BTreeMap<String, String>>) -> Headers {
    headers.map(|headers| Arc::new(headers.into_iter().collect()))
}

/// All three, or none.
fn tick_of(
    schedule: Option<String>,
    tick: Option<At>,
    missed: Option<u64>,
) -> Result<Option<Arc<TickOrigin>>, Error> {
    match (schedule, tick, missed) {
        (None, None, None) => Ok(None),
        (Some(name), Some(At(tick_ms)), Some(missed)) => {
            let schedule = ScheduleName::new(&name)?;
            Ok(Some(Arc::new(TickOrigin { schedule, tick_ms, missed })))
        }
        (name, ..) => Err(lacks("half a tick", &name.unwrap_or_default())),
    }
}

impl JobsIn {
    pub(super) fn jobs(self) -> Result<Vec<LeasedJob>, Error> {
        self.jobs.into_iter().map(LeasedIn::job).collect()
    }
}

impl LeasedIn {
    fn job(self) -> Result<LeasedJob, Error> {
        let (body, body_kind) = body_of(&self.id, self.body, self.text, self.base64)?;
        Ok(LeasedJob {
            topic: TopicName::new(&self.topic)?,
            id: JobId::from_str(&self.id)?,
            key: name_of(self.key, self.key_base64)?,
            token: Token::from_str(&self.token)?,
            attempt: self.attempt,
            due_at: self.due_at.0,
            put_at: self.put_at.0,
            late_ms: self.late_ms,
            expires_at: self.expires_at.0,
            ttr_ms: self.ttr_ms,
            priority: self.priority,
            headers: headers_of(self.headers),
            body,
            body_kind,
            tick: tick_of(self.schedule, self.tick, self.ticks_missed)?,
            group: name_of(self.group, self.group_base64)?,
            expires_after_ms: self.expires_after_ms,
        })
    }
}

impl ViewIn {
    pub(super) fn view(self) -> Result<JobView, Error> {
        let (body, body_kind) = body_of(&self.id, self.body, self.text, self.base64)?;
        let content = Content {
            key: name_of(self.key, self.key_base64)?,
            headers: headers_of(self.headers),
            body,
            body_kind,
            ttr_ms: self.ttr_ms,
            attempts_max: self.attempts_max,
            backoff: self.backoff.map(BackoffIn::backoff),
            key_ttl_ms: self.key_ttl_ms,
            expires_after_ms: self.expires_after_ms,
            put_at: self.put_at.0,
            tick: tick_of(self.schedule, self.tick, self.ticks_missed)?,
            group: name_of(self.group, self.group_base64)?,
        };
        let progress = Progress {
            priority: self.priority,
            attempts: self.attempts,
            reserves: self.reserves,
            expiries: self.expiries,
            releases: self.releases,
            kills: self.kills,
            kicks: self.kicks,
            bytes: u32::try_from(content.bytes()).unwrap_or(u32::MAX),
            error: self.error.map(Bytes::from),
            ..Progress::default()
        };
        Ok(JobView {
            topic: TopicName::new(&self.topic)?,
            state: state(&self.state).ok_or_else(|| lacks("no state", &self.id))?,
            due_at: self.due_at.0,
            job: Job { id: JobId::from_str(&self.id)?, content, progress },
            held_by: held_by_of(self.held_by.as_deref())?,
        })
    }
}

impl PageIn {
    pub(super) fn page(self) -> Result<Page, Error> {
        let jobs = self.jobs.into_iter().map(ViewIn::view).collect::<Result<_, _>>()?;
        Ok(Page { jobs, cursor: self.cursor })
    }
}
