//! The register of topics: which shards a topic has, one per partition. A registration never
//! changes, so it is read once and cached for good.

use std::rc::Rc;
use std::sync::Arc;

use crate::limits::SHARDS_MAX;
use bytes::Bytes;
use dormouse_core::error::{Code, Error};
use dormouse_core::topic::TopicName;
use redis::Value;

use super::{Dispatcher, Topic};
use crate::cluster::{Call, Script, slot_of};
use crate::keys;
use crate::wire::{Reader, malformed};

impl Dispatcher {
    /// The topic of this name, if it is registered.
    pub(crate) async fn find(&self, name: &TopicName) -> Result<Option<Rc<Topic>>, Error> {
        if let Some(topic) = self.known(name) {
            return Ok(Some(topic));
        }
        let args =
            vec![Bytes::from_static(b"find"), Bytes::copy_from_slice(name.as_str().as_bytes())];
        let registration = self.call_register(args, false).await?;
        self.topic_of(name, &registration)
    }

    /// The topic of this name, registered now if it is new.
    pub(crate) async fn find_or_create(&self, name: &TopicName) -> Result<Rc<Topic>, Error> {
        if let Some(topic) = self.known(name) {
            return Ok(topic);
        }
        let args = vec![
            Bytes::from_static(b"give"),
            Bytes::copy_from_slice(name.as_str().as_bytes()),
            Bytes::from(self.partitions.to_string()),
            Bytes::from(SHARDS_MAX.to_string()),
        ];
        let registration = self.call_register(args, true).await?;
        if matches!(&registration, Value::BulkString(text) if text == b"full") {
            return Err(Error::new(
                Code::Full,
                format!("topic {name} would need more than {SHARDS_MAX} shards; reuse topic names"),
            ));
        }
        self.topic_of(name, &registration)?.ok_or_else(|| malformed("the register gave no shards"))
    }

    /// Registers the known topics again with their old shards, after Redis lost its data: if
    /// another topic got those shards, job ids would lead to the wrong topic.
    pub(super) async fn restore(&self) {
        let known: Vec<_> =
            self.topics.borrow().iter().map(|(n, t)| (n.clone(), t.clone())).collect();
        for (name, topic) in known {
            if let Err(error) = self.restore_topic(&name, &topic).await {
                tracing::error!("redis: topic {name} is not registered again: {error}");
            }
        }
    }

    async fn restore_topic(&self, name: &TopicName, topic: &Topic) -> Result<(), Error> {
        let args = vec![
            Bytes::from_static(b"restore"),
            Bytes::copy_from_slice(name.as_str().as_bytes()),
            Bytes::from(topic.first_shard.to_string()),
            Bytes::from(topic.partitions.len().to_string()),
        ];
        self.call(&self.shared.scripts.register_mend, args, true).await?;
        // The script refuses if the name or the shards are taken; the register shows which.
        let args =
            vec![Bytes::from_static(b"find"), Bytes::copy_from_slice(name.as_str().as_bytes())];
        let registration = text(&self.call_register(args, false).await?)?;
        if Reader::new(&registration).u32().is_ok_and(|first| first == topic.first_shard) {
            return Ok(());
        }
        Err(Error::unavailable("it has got other shards meanwhile; restart this server"))
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
        let from = after.map_or_else(|| "-".to_owned(), |name| format!("({name}"));
        let args =
            vec![Bytes::from_static(b"page"), Bytes::from(from), Bytes::from(limit.to_string())];
        let Value::Array(names) = self.call_register(args, false).await? else {
            return Err(malformed("the register gave no page"));
        };
        let name = |value: &Value| TopicName::new(&String::from_utf8_lossy(&text(value)?));
        names.iter().map(name).collect()
    }

    fn topic_of(&self, name: &TopicName, registration: &Value) -> Result<Option<Rc<Topic>>, Error> {
        let registration = text(registration)?;
        if registration.is_empty() {
            return Ok(None);
        }
        let mut from = Reader::new(&registration);
        let (first_shard, partitions) = (from.u32()?, from.u16()?);
        Ok(Some(self.add_topic(name, first_shard, partitions)))
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
        let tag = keys::REGISTER_TAG;
        let call = Call {
            slot: slot_of(tag.as_bytes()),
            script: Arc::clone(script),
            keys: ["t", "i", "n"].map(|name| keys::key(tag, name)).to_vec(),
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
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(crate::partition::timed_out(&self.shared.client, call.slot)),
        }
    }
}

fn text(value: &Value) -> Result<Bytes, Error> {
    match value {
        Value::BulkString(bytes) => Ok(Bytes::copy_from_slice(bytes)),
        Value::SimpleString(text) => Ok(Bytes::copy_from_slice(text.as_bytes())),
        _ => Err(malformed("the register gave no text")),
    }
}
