//! The register of topics: which shards a topic has, one per partition. A registration never
//! changes, so it is read once and cached for good.
//!
//! Unless Redis loses its data. Then every server that notices registers the topics it knows again,
//! with the shards they had, so that other partitions, which may still have their jobs, stay
//! reachable. If the shards, or the name, went to others meanwhile, the topic is forgotten and
//! looked up again: ids from before then lead nowhere, because job numbers are not given again.

use std::rc::Rc;
use std::sync::Arc;

use crate::limits::SHARDS_MAX;
use bytes::Bytes;
use dormouse_core::error::{Code, Error};
use dormouse_core::topic::TopicName;
use redis::Value;

use super::{Dispatcher, Topic};
use crate::clock;
use crate::cluster::{Call, Script, slot_of};
use crate::keys;
use crate::partition::registered_anew;
use crate::wire::codes::{MENDED, TAKEN};
use crate::wire::{Reader, malformed};

/// Topics named in one line of the log.
const LISTED_MAX: usize = 10;

impl Dispatcher {
    /// The topic of this name, if it is registered.
    pub(crate) async fn find(&self, name: &TopicName) -> Result<Option<Rc<Topic>>, Error> {
        if let Some(topic) = self.known(name) {
            return Ok(Some(topic));
        }
        let registration = self.registration(name).await?;
        self.topic_of(name, &registration).await
    }

    /// The topic of this name, registered now if it is new.
    pub(crate) async fn find_or_create(&self, name: &TopicName) -> Result<Rc<Topic>, Error> {
        // Only a new registration has to wait for replicas, which may be missing.
        let found =
            if self.shared.replicas > 0 { self.find(name).await? } else { self.known(name) };
        if let Some(topic) = found {
            return Ok(topic);
        }
        let args = vec![
            Bytes::from_static(b"give"),
            Bytes::copy_from_slice(name.as_str().as_bytes()),
            Bytes::from(self.partitions.to_string()),
            Bytes::from(SHARDS_MAX.to_string()),
            Bytes::from(self.last_shard.get().to_string()),
        ];
        let registration = self.call_register(args, true).await?;
        if matches!(&registration, Value::BulkString(text) if text == b"full") {
            return Err(Error::new(
                Code::Full,
                format!("topic {name} would need more than {SHARDS_MAX} shards; reuse topic names"),
            ));
        }
        let topic = self.topic_of(name, &text(&registration)?).await?;
        topic.ok_or_else(|| malformed("the register gave no shards"))
    }

    /// Registers the known topics again with their old shards, after Redis lost its data: if
    /// another topic got those shards, job ids would lead to the wrong topic. An error if this
    /// topic has other shards.
    pub(super) async fn restore(&self, noticed_by: &TopicName) -> Result<(), Error> {
        let noticed_at = clock::instant();
        let mut restored_at = self.restored_at.lock().await;
        // All partitions may notice while the first restores: once is enough. What is lost anew
        // meanwhile is noticed again by the next script.
        if restored_at.is_none_or(|ended_at| ended_at < noticed_at) {
            self.restore_all(noticed_by).await?;
            *restored_at = Some(clock::instant());
        }
        let is_known = self.topics.borrow().contains_key(noticed_by);
        if is_known { Ok(()) } else { Err(registered_anew()) }
    }

    async fn restore_all(&self, noticed_by: &TopicName) -> Result<(), Error> {
        let mut known: Vec<_> =
            self.topics.borrow().iter().map(|(n, t)| (n.clone(), t.clone())).collect();
        known.sort_by(|(name, _), (other, _)| name.cmp(other));
        // The list is lost, too.
        self.ticking.borrow_mut().clear();
        let (mut kept, mut moved) = (Vec::new(), Vec::new());
        for (name, topic) in &known {
            let of_its_kind =
                if self.restore_topic(name, topic).await? { &mut kept } else { &mut moved };
            of_its_kind.push((name, topic));
        }
        // All data is lost at once: if the first is still there, so are the others.
        if let Some((first, _)) = kept.first()
            && self.registration(first).await?.is_empty()
        {
            return Err(lost_again());
        }
        kept.iter().for_each(|(_, topic)| topic.partitions.iter().for_each(|it| it.reset()));
        moved.iter().for_each(|(name, _)| self.forget(name));
        let set = |(_, topic): &&(&TopicName, &Rc<Topic>)| topic.has_settings();
        tracing::error!(
            "redis: Redis has lost data, noticed in topic {noticed_by}. This server registered \
             {} topics again, and writes settings back of: {}. Others have the shards of: \
             {}; these are registered anew. Settings are lost of: {}",
            kept.len(),
            listed(kept.iter().filter(set)),
            listed(moved.iter()),
            listed(moved.iter().filter(set)),
        );
        Ok(())
    }

    /// Looks whether the topic is registered as this server knows it. If it is not registered,
    /// Redis has lost its data.
    pub(super) async fn confirm(&self, name: &TopicName) -> Result<(), Error> {
        let Some(topic) = self.known(name) else { return Err(registered_anew()) };
        let mut registration = self.registration(name).await?;
        if registration.is_empty() {
            self.restore(name).await?;
            registration = self.registration(name).await?;
            if registration.is_empty() {
                return Err(lost_again());
            }
        }
        if is_registered_as(&registration, &topic) {
            return Ok(());
        }
        tracing::error!(
            "redis: Redis has lost data: topic {name} was registered anew by another server, \
             whose settings count"
        );
        self.forget(name);
        Err(registered_anew())
    }

    /// False = others have the name or the shards.
    async fn restore_topic(&self, name: &TopicName, topic: &Topic) -> Result<bool, Error> {
        let args = vec![
            Bytes::from_static(b"restore"),
            Bytes::copy_from_slice(name.as_str().as_bytes()),
            Bytes::from(topic.first_shard.to_string()),
            Bytes::from(topic.partitions.len().to_string()),
        ];
        // Without waiting for replicas, which may have to be restored themselves.
        match self.call(&self.shared.scripts.register_mend, args, false).await? {
            Value::Int(MENDED) => Ok(true),
            Value::Int(TAKEN) => Ok(false),
            _ => match self.registration(name).await? {
                gone if gone.is_empty() => Err(lost_again()),
                registration => Ok(is_registered_as(&registration, topic)),
            },
        }
    }

    /// The registration of a topic; empty = there is none.
    async fn registration(&self, name: &TopicName) -> Result<Bytes, Error> {
        let args =
            vec![Bytes::from_static(b"find"), Bytes::copy_from_slice(name.as_str().as_bytes())];
        text(&self.call_register(args, false).await?)
    }

    /// Looks up the topic of a shard.
    pub(crate) async fn find_shard(&self, shard: u32) -> Result<(), Error> {
        if self.shards.borrow().contains_key(&shard) {
            return Ok(());
        }
        let args = vec![Bytes::from_static(b"whose"), Bytes::copy_from_slice(&shard.to_be_bytes())];
        let name = text(&self.call_register(args, false).await?)?;
        if let Ok(name) = std::str::from_utf8(&name)
            && !name.is_empty()
        {
            self.find(&TopicName::new(name)?).await?;
        }
        Ok(())
    }

    /// The names of topics after the given one, in order.
    pub(crate) async fn page(
        &self,
        after: Option<&TopicName>,
        limit: usize,
    ) -> Result<Vec<TopicName>, Error> {
        self.name_page(b"page", after, limit).await
    }

    async fn name_page(
        &self,
        verb: &'static [u8],
        after: Option<&TopicName>,
        limit: usize,
    ) -> Result<Vec<TopicName>, Error> {
        let from = after.map_or_else(|| "-".to_owned(), |name| format!("({name}"));
        let args = vec![verb.into(), Bytes::from(from), Bytes::from(limit.to_string())];
        let Value::Array(names) = self.call_register(args, false).await? else {
            return Err(malformed("the register gave no page"));
        };
        let name = |value: &Value| TopicName::new(&String::from_utf8_lossy(&text(value)?));
        names.iter().map(name).collect()
    }

    async fn topic_of(
        &self,
        name: &TopicName,
        registration: &Bytes,
    ) -> Result<Option<Rc<Topic>>, Error> {
        if registration.is_empty() {
            return Ok(None);
        }
        let mut from = Reader::new(registration);
        let (first_shard, partitions) = (from.u32()?, from.u16()?);
        if self.knows_otherwise(name, first_shard, partitions) {
            // An error may mean that this topic is not known yet, which is so.
            let restored = self.restore(name).await;
            if self.knows_otherwise(name, first_shard, partitions) {
                return Err(restored.err().unwrap_or_else(registered_anew));
            }
        }
        Ok(Some(self.add_topic(name, first_shard, partitions)))
    }

    /// Lists a topic as one that has schedules, unless this server has done so before.
    pub(super) async fn register_ticking(&self, name: &TopicName) -> Result<(), Error> {
        if self.ticking.borrow().contains(name) {
            return Ok(());
        }
        let name_arg = Bytes::copy_from_slice(name.as_str().as_bytes());
        self.call_register(vec![Bytes::from_static(b"tick"), name_arg], true).await?;
        self.ticking.borrow_mut().insert(name.clone());
        Ok(())
    }

    /// The names of topics that have had schedules, after the given one, in order.
    pub(super) async fn ticking_page(
        &self,
        after: Option<&TopicName>,
        limit: usize,
    ) -> Result<Vec<TopicName>, Error> {
        self.name_page(b"ticking", after, limit).await
    }

    async fn call_register(&self, args: Vec<Bytes>, is_change: bool) -> Result<Value, Error> {
        self.call(&self.shared.scripts.register, args, is_change).await
    }

    async fn call(
        &self,
        script: &Arc<Script>,
        args: Vec<Bytes>,
        is_change: bool,
    ) -> Result<Value, Error> {
        self.call_keys(script, &["t", "i", "n", "c"], args, is_change).await
    }

    /// Calls a script with keys that have the register's tag.
    pub(super) async fn call_keys(
        &self,
        script: &Arc<Script>,
        names: &[&str],
        args: Vec<Bytes>,
        is_change: bool,
    ) -> Result<Value, Error> {
        let tag = keys::REGISTER_TAG;
        let call = Call {
            slot: slot_of(tag.as_bytes()),
            script: Arc::clone(script),
            keys: names.iter().map(|name| keys::key(tag, name)).collect(),
            args,
            replicas: if is_change { self.shared.replicas } else { 0 },
        };
        let reply =
            tokio::time::timeout(crate::scheduler::REPLY_TIMEOUT, self.shared.client.call(&call));
        match reply.await {
            Ok(Ok(reply)) if reply.replicas < u64::from(call.replicas) => Err(Error::unavailable(
                "too few replicas confirmed the register of topics in time; try again",
            )),
            Ok(Ok(reply)) => Ok(reply.value),
            // Nothing was put yet, and a topic may be registered twice.
            Ok(Err(error)) => Err(error.without_doubt().into()),
            Err(_) => Err(crate::partition::timed_out(&self.shared.client, call.slot)),
        }
    }
}

/// Whether a registration has the shards of this topic, the first and all others.
fn is_registered_as(registration: &[u8], topic: &Topic) -> bool {
    let mut reader = Reader::new(registration);
    reader.u32().is_ok_and(|first| first == topic.first_shard)
        && reader.u16().is_ok_and(|count| usize::from(count) == topic.partitions.len())
}

/// What was registered a moment ago is not there any more. The next script notices it.
fn lost_again() -> Error {
    Error::unavailable("Redis has lost its data while topics were registered again; try again")
}

/// Names for the log.
fn listed<'a>(topics: impl Iterator<Item = &'a (&'a TopicName, &'a Rc<Topic>)>) -> String {
    let names: Vec<_> = topics.map(|(name, _)| name.to_string()).collect();
    let mut text: Vec<_> = names.iter().take(LISTED_MAX).cloned().collect();
    match names.len() {
        0 => text.push("none".to_owned()),
        count if count > LISTED_MAX => text.push(format!("and {} more", count - LISTED_MAX)),
        _ => {}
    }
    text.join(", ")
}

pub(super) fn text(value: &Value) -> Result<Bytes, Error> {
    match value {
        Value::BulkString(bytes) => Ok(Bytes::copy_from_slice(bytes)),
        Value::SimpleString(text) => Ok(Bytes::copy_from_slice(text.as_bytes())),
        _ => Err(malformed("the register gave no text")),
    }
}
