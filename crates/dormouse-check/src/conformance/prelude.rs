//! Short words for cases: requests with defaults, and what is expected of refusals.

use std::fmt::Debug;

use bytes::Bytes;

pub(super) use std::sync::Arc;

pub(super) use dormouse_core::backoff::{Backoff, Delays};
pub(super) use dormouse_core::command::{Command, Reply};
pub(super) use dormouse_core::error::{Code, Error};
pub(super) use dormouse_core::job::{BodyKind, JobId, State, Token};
pub(super) use dormouse_core::limits;
pub(super) use dormouse_core::op::*;
pub(super) use dormouse_core::schedule::{Catchup, Overlap, ScheduleName, Template};
pub(super) use dormouse_core::topic::{Settings, TopicName};

pub(super) use super::subject::Subject;

/// The most a case puts to see a thing with many jobs: more than a page, more than a memtable.
pub(super) const MANY: usize = 1_200;

pub(super) fn topic(name: &str) -> TopicName {
    TopicName::new(name).unwrap_or_else(|error| panic!("{error}"))
}

/// A job due now with every default.
pub(super) fn job(name: &str) -> Put {
    Put::new(topic(name), "work")
}

/// A job due after this delay.
pub(super) fn delayed(name: &str, delay_ms: i64) -> Put {
    Put { delay_ms: Some(delay_ms), ..job(name) }
}

/// A job due now with a key.
pub(super) fn keyed(name: &str, key: &str) -> Put {
    Put { key: Some(bytes(key)), ..job(name) }
}

pub(super) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub(super) fn by_id(id: JobId) -> Target {
    Target::Id(id)
}

pub(super) fn by_key(name: &str, key: &str) -> Target {
    Target::Key { topic: topic(name), key: bytes(key) }
}

/// A reserve of one job of one topic that does not wait.
pub(super) fn take(name: &str) -> Reserve {
    Reserve { topics: vec![topic(name)], max: 1, wait_ms: 0, ttr_ms: None, session: None }
}

/// A reserve of one job of one topic that waits.
pub(super) fn wait_for(name: &str, wait_ms: i64) -> Reserve {
    Reserve { wait_ms, ..take(name) }
}

pub(super) fn schedule_name(name: &str) -> ScheduleName {
    ScheduleName::new(name).unwrap_or_else(|error| panic!("{error}"))
}

/// A schedule of topic `t`, named `s`, that ticks at this distance.
pub(super) fn every(span_ms: i64) -> PutSchedule {
    let template =
        Template { body: bytes("work"), body_kind: BodyKind::Text, ..Template::default() };
    let put = PutSchedule::new(topic("t"), schedule_name("s"), template);
    PutSchedule { every_ms: Some(span_ms), ..put }
}

/// A schedule of topic `t`, named `s`, that ticks by the calendar of UTC.
pub(super) fn cron(text: &str) -> PutSchedule {
    PutSchedule { every_ms: None, cron: Some(text.to_owned()), ..every(1_000) }
}

pub(super) fn failed(token: Token) -> Nack {
    Nack { token, delay_ms: None, priority: None, error: None }
}

pub(super) fn give_back(token: Token) -> Release {
    Release { token, delay_ms: None, priority: None }
}

pub(super) fn kill_held(token: Token) -> Kill {
    Kill { target: KillTarget::Token(token), error: None, priority: None }
}

pub(super) fn kill_resting(target: Target) -> Kill {
    Kill { target: KillTarget::Resting(target), error: None, priority: None }
}

/// Looks at an error: its code is the stable one, and its text names these words: the field, the
/// limit, the fix.
#[track_caller]
pub(super) fn refused<T: Debug>(answer: Result<T, Error>, code: Code, words: &[&str]) -> Error {
    let error = answer.expect_err("a refusal");
    assert_eq!(error.code, code, "{error}");
    for word in words {
        assert!(error.text.contains(word), "{word:?} is missing in: {error}");
    }
    error
}

/// A number as it stands in a text.
pub(super) fn number(value: impl ToString) -> String {
    value.to_string()
}
