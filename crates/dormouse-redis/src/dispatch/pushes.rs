//! The list of topics that are pushed, beside the register: see `lua/pushes.lua`.

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::limits::{PUSHES_MAX, PUSHES_PAGE_BYTES_MAX};
use dormouse_core::op::{NewPush, Pushes, PushesPage, SetPush};
use dormouse_core::refusal::{push_conflict, too_many_pushes};
use dormouse_core::topic::{Push, TopicName};
use redis::Value;

use super::Dispatcher;
use super::register::text;
use crate::wire::{Reader, Writer, malformed};

/// The keys of the list.
const KEYS: &[&str] = &["u", "p"];

/// How a topic was pushed before a change, and is after it.
pub(super) struct PushChange {
    pub(super) before: Option<Arc<Push>>,
    pub(super) after: Option<Arc<Push>>,
    /// Greater than those of all changes before; removals have one, too.
    pub(super) version: u64,
}

impl Dispatcher {
    /// How a topic is pushed.
    pub(super) async fn push_of(&self, topic: &TopicName) -> Result<Option<Arc<Push>>, Error> {
        let args = vec![Bytes::from_static(b"get"), name_arg(topic)];
        read_entry(&text(&self.call_pushes(args, false).await?)?)
    }

    /// Changes how a topic is pushed. The script compares and stores.
    pub(super) async fn set_push(&self, set: &SetPush) -> Result<PushChange, Error> {
        let expected = set.if_version.map(|version| version.to_string()).unwrap_or_default();
        let entry = set.push.as_ref().map(write_entry).unwrap_or_default();
        let most = Bytes::from(PUSHES_MAX.to_string());
        let args = vec![
            Bytes::from_static(b"set"),
            name_arg(&set.topic),
            Bytes::from(expected),
            entry,
            most,
        ];
        match self.call_pushes(args, true).await? {
            Value::Int(version) => {
                let version = u64::try_from(version).unwrap_or(0);
                Err(push_conflict(&set.topic, set.if_version.unwrap_or(0), version))
            }
            Value::BulkString(full) if full == b"full" => Err(too_many_pushes()),
            Value::Array(entries) if entries.len() == 3 => Ok(PushChange {
                after: read_entry(&text(&entries[0])?)?,
                before: read_entry(&text(&entries[1])?)?,
                version: Reader::new(&text(&entries[2])?).u64()?,
            }),
            _ => Err(malformed("the list of pushes gave no entries")),
        }
    }

    /// A page of the topics that are pushed.
    pub(super) async fn pushes_page(&self, page: &Pushes) -> Result<PushesPage, Error> {
        let after = page.after.as_ref();
        let args = vec![
            Bytes::from_static(b"page"),
            Bytes::from(after.map_or_else(|| "-".to_owned(), |name| format!("({name}"))),
            Bytes::from(page.limit.to_string()),
            Bytes::from(PUSHES_PAGE_BYTES_MAX.to_string()),
            Bytes::from(page.seen.map(|seen| seen.to_string()).unwrap_or_default()),
        ];
        let Value::Array(values) = self.call_pushes(args, false).await? else {
            return Err(malformed("the list of pushes gave no page"));
        };
        let [revision, more, entries @ ..] = values.as_slice() else {
            return Err(malformed("the list of pushes gave half a page"));
        };
        let revision = String::from_utf8_lossy(&text(revision)?).parse();
        let revision = revision.map_err(|_| malformed("the revision of pushes is no number"))?;
        let mut found = PushesPage { pushes: Vec::new(), more: *more == Value::Int(1), revision };
        for pair in entries.chunks_exact(2) {
            let name = TopicName::new(&String::from_utf8_lossy(&text(&pair[0])?))?;
            if let Some(push) = read_entry(&text(&pair[1])?)? {
                found.pushes.push((name, push));
            }
        }
        Ok(found)
    }

    async fn call_pushes(&self, args: Vec<Bytes>, is_change: bool) -> Result<Value, Error> {
        self.call_keys(&self.shared.scripts.pushes, KEYS, args, is_change).await
    }
}

fn name_arg(topic: &TopicName) -> Bytes {
    Bytes::copy_from_slice(topic.as_str().as_bytes())
}

/// Concurrency, whether it is disabled, and the record; the script writes the version before it.
fn write_entry(push: &NewPush) -> Bytes {
    let mut to = Writer::default();
    to.u64(push.concurrency).u8(u8::from(push.is_disabled)).bytes(&push.record).take()
}

/// An empty entry is none.
fn read_entry(entry: &Bytes) -> Result<Option<Arc<Push>>, Error> {
    if entry.is_empty() {
        return Ok(None);
    }
    let mut from = Reader::new(entry);
    let (version, concurrency, is_disabled) = (from.u64()?, from.u64()?, from.u8()? == 1);
    let record = Bytes::copy_from_slice(from.rest());
    Ok(Some(Arc::new(Push { version, concurrency, is_disabled, record })))
}
