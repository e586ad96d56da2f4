//! Puts as they go: in JSON, or as they are.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dormouse_core::backoff::{Backoff, Delays};
use dormouse_core::error::Error;
use dormouse_core::job::BodyKind;
use dormouse_core::op::{Chain, Put};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::ask::{Part, not_carried, text};
use super::client::Call;
use super::query::{Query, encode};
use super::topic::backoff_out;
use dormouse_client::codec::text::{backoff_words, on_conflict_word};

/// How puts are written. The API has several ways to say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutForm {
    /// One as a JSON object, several as an array.
    Json,
    /// One as its bare body with options in the query, several as lines of JSON.
    Plain,
}

/// A put as a JSON object.
#[derive(Serialize)]
struct PutOut<'a> {
    /// Only in a chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    on_conflict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_ttl: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttr: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts_max: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_after: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<BTreeMap<&'a str, &'a str>>,
}

/// Puts into one topic after the other, each topic's in one request.
pub(super) fn parts(puts: &[Put], form: PutForm) -> Result<Vec<Part>, Error> {
    let of_topic = puts.chunk_by(|a, b| a.topic == b.topic);
    of_topic.map(|puts| Ok(Part { call: call(puts, form)?, items: puts.len() })).collect()
}

fn call(puts: &[Put], form: PutForm) -> Result<Call, Error> {
    let topic = puts.first().map_or("", |put| put.topic.as_str());
    let path = format!("/v1/topics/{}/jobs", encode(topic));
    match (puts, form) {
        ([put], PutForm::Plain) if can_be_plain(put) => plain(path, put),
        ([put], _) => {
            Ok(Call { method: "POST", path, content_type: "application/json", body: json(put)? })
        }
        (puts, PutForm::Json) => {
            let list = puts.iter().map(json).collect::<Result<Vec<_>, _>>()?;
            let body = [b"[".as_slice(), &list.join(&b","[..]), b"]"].concat();
            Ok(Call { method: "POST", path, content_type: "application/json", body })
        }
        (puts, PutForm::Plain) => {
            let lines = puts.iter().map(json).collect::<Result<Vec<_>, _>>()?;
            let body = lines.join(&b"\n"[..]);
            Ok(Call { method: "POST", path, content_type: "application/x-ndjson", body })
        }
    }
}

/// JSON would be taken for a form, and a list without an entry has no words.
fn can_be_plain(put: &Put) -> bool {
    let is_empty = |backoff: &Backoff| backoff.delays == Delays::List { delays_ms: Vec::new() };
    put.body_kind != BodyKind::Json && !put.backoff.as_deref().is_some_and(is_empty)
}

/// An ack that puts jobs.
pub(super) fn chain(chain: &Chain) -> Result<Call, Error> {
    let named = |put: &Put| object(put, Some(put.topic.as_str()));
    let puts = chain.puts.iter().map(named).collect::<Result<Vec<_>, _>>()?;
    let begin = format!("{{\"token\":\"{}\",\"put\":[", chain.token);
    let body = [begin.as_bytes(), &puts.join(&b","[..]), b"]}"].concat();
    let path = "/v1/ack".to_owned();
    Ok(Call { method: "POST", path, content_type: "application/json", body })
}

fn json(put: &Put) -> Result<Vec<u8>, Error> {
    object(put, None)
}

fn object(put: &Put, topic: Option<&str>) -> Result<Vec<u8>, Error> {
    let bytes = &put.body[..];
    let (mut body, mut as_text, mut base64) = (None, None, None);
    match put.body_kind {
        BodyKind::Json => {
            let json = serde_json::from_slice(bytes).map_err(|_| not_carried("a body"))?;
            body = Some(json);
        }
        BodyKind::Text => as_text = Some(text("a body", bytes)?),
        BodyKind::Bytes => base64 = Some(STANDARD.encode(bytes)),
    }
    let headers = put.headers.as_ref();
    let out = PutOut {
        topic,
        body,
        text: as_text,
        base64,
        delay: put.delay_ms,
        at: put.at_ms,
        key: put.key.as_ref().map(|key| text("a key", key)).transpose()?,
        on_conflict: on_conflict_word(put.on_conflict),
        key_ttl: put.key_ttl_ms,
        priority: put.priority,
        ttr: put.ttr_ms,
        attempts_max: put.attempts_max,
        backoff: put.backoff.as_deref().map(backoff_out),
        expires_after: put.expires_after_ms,
        group: put.group.as_ref().map(|group| text("a group", group)).transpose()?,
        headers: headers.map(|headers| headers.iter().map(|(n, v)| (&n[..], &v[..])).collect()),
    };
    serde_json::to_vec(&out).map_err(|error| Error::invalid(error.to_string()))
}

/// The bare body, its options in the query.
fn plain(path: String, put: &Put) -> Result<Call, Error> {
    let mut query = Query::default();
    query.add("delay", put.delay_ms);
    query.add("at", put.at_ms);
    query.add("key", put.key.as_ref().map(|key| text("a key", key)).transpose()?);
    query.add("on_conflict", Some(on_conflict_word(put.on_conflict)));
    query.add("key_ttl", put.key_ttl_ms);
    query.add("priority", put.priority);
    query.add("ttr", put.ttr_ms);
    query.add("attempts_max", put.attempts_max);
    query.add("backoff", put.backoff.as_deref().map(backoff_words));
    query.add("expires_after", put.expires_after_ms);
    query.add("group", put.group.as_ref().map(|group| text("a group", group)).transpose()?);
    for (name, value) in put.headers.iter().flat_map(|headers| headers.iter()) {
        query.add(&format!("header.{name}"), Some(value));
    }
    let content_type = match put.body_kind {
        BodyKind::Text => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    let body = put.body.to_vec();
    Ok(Call { method: "POST", path: query.after(path), content_type, body })
}
