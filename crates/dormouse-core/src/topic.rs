//! A topic: a named line of jobs with its settings and counts.

use core::time::Duration;
use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;

use crate::backoff::Backoff;
use crate::error::Error;
use crate::limits::{PUSH_ATTEMPTS_MAX_DEFAULT, TOPIC_BYTES_MAX};
use crate::rate::Rate;

/// A topic's number within a store: given at its birth, never given again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicNo(pub u32);

/// The bit that tells the line of a topic's schedules from the topic.
const SCHEDULES: u32 = 1 << 31;
/// The bit that tells the line of the deadlines of a topic's jobs from the topic.
const DEADLINES: u32 = 1 << 30;

impl TopicNo {
    /// The largest number of a topic.
    pub const MAX: TopicNo = TopicNo(DEADLINES - 1);

    /// The line in which the schedules of this topic rest. It is none of the topics that have
    /// names, so what happens to the topic's jobs does not touch it.
    pub fn schedules(self) -> TopicNo {
        TopicNo(self.0 | SCHEDULES)
    }

    /// The topic whose schedules rest in this line; `None` = it is a topic.
    pub fn scheduled_topic(self) -> Option<TopicNo> {
        (self.0 & SCHEDULES != 0).then_some(TopicNo(self.0 & !SCHEDULES))
    }

    /// The line in which the deadlines of this topic's jobs rest.
    pub fn deadlines(self) -> TopicNo {
        TopicNo(self.0 | DEADLINES)
    }

    /// The topic the deadlines of whose jobs rest in this line; `None` = it is another line.
    pub fn deadline_topic(self) -> Option<TopicNo> {
        let is_line = self.0 & DEADLINES != 0 && self.scheduled_topic().is_none();
        is_line.then_some(TopicNo(self.0 & !DEADLINES))
    }

    /// The topic that this is, or that it is a line beside.
    pub fn topic(self) -> TopicNo {
        TopicNo(self.0 & TopicNo::MAX.0)
    }

    /// Whether it is a topic and not a line beside one: only jobs rest in it.
    pub fn is_topic(self) -> bool {
        self.0 <= TopicNo::MAX.0
    }
}

/// A topic's name: 1-200 bytes of `A-Za-z0-9-+/;.$_():`, not starting with `-`. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(Arc<str>);

impl TopicName {
    /// Checks a name.
    pub fn new(name: &str) -> Result<TopicName, Error> {
        check_name("topic", name)?;
        Ok(TopicName(Arc::from(name)))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TopicName {
    type Err = Error;
    fn from_str(name: &str) -> Result<TopicName, Error> {
        TopicName::new(name)
    }
}

impl Borrow<str> for TopicName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Checks the name of a topic or a schedule.
pub(crate) fn check_name(kind: &str, name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > TOPIC_BYTES_MAX {
        return Err(Error::invalid(format!(
            "{kind} has {} bytes; give it 1 to {TOPIC_BYTES_MAX}",
            name.len()
        )));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-+/;.$_():".contains(&byte);
    if name.starts_with('-') || !name.bytes().all(allowed) {
        return Err(Error::invalid(format!(
            "{kind} {name:?} may hold A-Z a-z 0-9 - + / ; . $ _ ( ) : only and not start with -"
        )));
    }
    Ok(())
}

/// The settings of a topic; `None` = the built-in default, or no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Lease time of jobs put without one.
    pub ttr_ms: Option<u64>,
    /// Attempts of jobs put without a number.
    pub attempts_max: Option<u32>,
    /// Backoff of jobs put without one.
    pub backoff: Option<Arc<Backoff>>,
    /// Delay of jobs put without a delay or a time.
    pub delay_ms: Option<u64>,
    /// Jobs put without such a span die if nobody takes them so long after they were due.
    pub expires_after_ms: Option<u64>,
    /// Most jobs in any state; a put beyond answers `full`.
    pub jobs_max: Option<u64>,
    /// Most bytes of bodies, keys and headers; a put beyond answers `full`.
    pub bytes_max: Option<u64>,
    /// Dead jobs older than this are removed.
    pub dead_ttl_ms: Option<u64>,
    /// Most dead jobs; the oldest are removed.
    pub dead_max: Option<u64>,
    /// Jobs that die are put into this topic instead of resting as dead.
    pub dead_topic: Option<TopicName>,
    /// How long acked jobs are kept as done; `None` = not at all.
    pub keep_done_ms: Option<u64>,
    /// Most jobs leased at once; others stay ready.
    pub leased_max: Option<u64>,
    /// How fast jobs are taken; others stay ready.
    pub rate: Option<Rate>,
    /// Most jobs of a group leased at once; others of it stay ready.
    pub group_leased_max: Option<u64>,
    /// How fast jobs of a group are taken; others of it stay ready.
    pub group_rate: Option<Rate>,
    /// How its jobs are pushed. Changed by `set_push` alone: `set_topic` keeps it.
    pub push: Option<Arc<Push>>,
}

impl Settings {
    /// Most jobs leased at once: the smaller of the topic's limit and that of its push.
    pub fn leased_limit(&self) -> Option<u64> {
        let of_push = self.push.as_ref().map(|push| push.concurrency);
        [self.leased_max, of_push].into_iter().flatten().min()
    }

    /// Attempts of jobs put without a number; `None` = the built-in default.
    pub fn attempts_of_put(&self) -> Option<u32> {
        let of_push = self.push.as_ref().filter(|_| self.backoff.is_none());
        self.attempts_max.or(of_push.map(|_| PUSH_ATTEMPTS_MAX_DEFAULT))
    }

    /// Backoff of jobs put without one; `None` = the built-in default.
    pub fn backoff_of_put(&self) -> Option<Arc<Backoff>> {
        let of_push = || self.push.as_ref().map(|_| Arc::clone(&PUSH_BACKOFF));
        self.backoff.clone().or_else(of_push)
    }
}

/// Receivers may be away for a night or a weekend: 3 days in all.
static PUSH_BACKOFF: LazyLock<Arc<Backoff>> = LazyLock::new(|| {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    let seconds = [5, MINUTE, 5 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR];
    let seconds = seconds.into_iter().chain([12 * HOUR, 24 * HOUR, 24 * HOUR]);
    Arc::new(Backoff::list(seconds.map(Duration::from_secs)))
});

/// How the jobs of a topic are pushed. The rules know how many may be under way; the rest is a
/// record of the server that pushes.
#[derive(Clone, PartialEq, Eq)]
pub struct Push {
    /// Grows with every change, also when the push was removed in between.
    pub version: u64,
    /// Most jobs of the topic leased at once.
    pub concurrency: u64,
    /// Nothing is pushed until somebody resumes it.
    pub is_disabled: bool,
    /// Everything else.
    pub record: Bytes,
}

impl fmt::Debug for Push {
    /// The record may hold passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Push { version, concurrency, is_disabled, record } = self;
        f.debug_struct("Push")
            .field("version", version)
            .field("concurrency", concurrency)
            .field("is_disabled", is_disabled)
            .field("record_bytes", &record.len())
            .finish()
    }
}

/// Until when reserve gives nothing from a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Until resumed.
    Open,
    /// Until this steady instant.
    Until(u64),
}
