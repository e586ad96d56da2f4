//! The configuration that servers share about a partition: the topic's settings and the priorities
//! in use. Field `g` of `s` has it, field `v` its version, which every script checks.

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::rate::Rate;
use dormouse_core::topic::{Push, Settings, TopicName};

use super::record::{decode_backoff, encode_backoff};
use super::{Reader, Writer};

/// A partition's configuration in one version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) version: u64,
    /// The priorities in use, ascending.
    pub(crate) priorities: Vec<u32>,
    /// The settings of the topic; limits are those of the whole topic.
    pub(crate) settings: Settings,
    /// The shard of the partition, by which a server notices that the topic was registered anew; 0
    /// = an earlier version wrote it, which did not say.
    pub(crate) shard: u32,
    /// The version of the push, or of its removal: whoever tells of an older one comes too late.
    pub(crate) push_version: u64,
}

impl Config {
    pub(crate) fn encode(&self) -> Bytes {
        let mut to = Writer::default();
        to.u16(u16::try_from(self.priorities.len()).unwrap_or(u16::MAX));
        for &priority in &self.priorities {
            to.u32(priority);
        }
        let settings = &self.settings;
        for value in [
            settings.ttr_ms,
            settings.attempts_max.map(u64::from),
            settings.jobs_max,
            settings.bytes_max,
            settings.dead_ttl_ms,
            settings.dead_max,
        ] {
            to.u8(u8::from(value.is_some())).u64(value.unwrap_or(0));
        }
        let backoff = settings.backoff.as_deref().map(encode_backoff).unwrap_or_default();
        to.short_bytes(&backoff).u32(self.shard);
        for value in [settings.delay_ms, settings.expires_after_ms, settings.keep_done_ms] {
            to.u8(u8::from(value.is_some())).u64(value.unwrap_or(0));
        }
        let dead_topic = settings.dead_topic.as_ref().map_or("", TopicName::as_str);
        to.short_bytes(dead_topic.as_bytes());
        for value in [settings.leased_max, settings.group_leased_max] {
            to.u8(u8::from(value.is_some())).u64(value.unwrap_or(0));
        }
        for rate in [settings.rate, settings.group_rate] {
            let Rate { jobs, per_ms, burst } = rate.unwrap_or(Rate::new(0, 0));
            to.u64(jobs).u64(per_ms).u64(burst);
        }
        // Its record is in the list of pushes. Without any concurrency it was removed.
        if self.push_version > 0 {
            let push = settings.push.as_deref();
            let is_disabled = push.is_some_and(|push| push.is_disabled);
            to.u64(self.push_version).u64(push.map_or(0, |push| push.concurrency));
            to.u8(u8::from(is_disabled));
        }
        to.take()
    }

    /// `version:` and the encoded configuration, as scripts expect it.
    pub(crate) fn encode_with_version(&self) -> Bytes {
        let mut text = format!("{}:", self.version).into_bytes();
        text.extend_from_slice(&self.encode());
        Bytes::from(text)
    }

    /// An empty text is the configuration of a topic that has never been configured.
    pub(crate) fn decode(version: u64, text: &[u8]) -> Result<Config, Error> {
        if text.is_empty() {
            return Ok(Config { version, ..Config::default() });
        }
        let mut from = Reader::new(text);
        let count = from.u16()?;
        let priorities = (0..count).map(|_| from.u32()).collect::<Result<_, _>>()?;
        let value = |from: &mut Reader<'_>| -> Result<Option<u64>, Error> {
            let given = from.u8()? == 1;
            let value = from.u64()?;
            Ok(given.then_some(value))
        };
        let mut settings = Settings {
            ttr_ms: value(&mut from)?,
            attempts_max: value(&mut from)?.map(|value| u32::try_from(value).unwrap_or(u32::MAX)),
            jobs_max: value(&mut from)?,
            bytes_max: value(&mut from)?,
            dead_ttl_ms: value(&mut from)?,
            dead_max: value(&mut from)?,
            ..Settings::default()
        };
        let backoff = from.short_bytes()?;
        if !backoff.is_empty() {
            settings.backoff = Some(Arc::new(decode_backoff(backoff)?));
        }
        let shard = if from.is_empty() { 0 } else { from.u32()? };
        // Earlier versions end here.
        if !from.is_empty() {
            settings.delay_ms = value(&mut from)?;
            settings.expires_after_ms = value(&mut from)?;
            settings.keep_done_ms = value(&mut from)?;
            let name = String::from_utf8_lossy(from.short_bytes()?);
            settings.dead_topic = if name.is_empty() { None } else { Some(TopicName::new(&name)?) };
        }
        // And the next ones here.
        if !from.is_empty() {
            settings.leased_max = value(&mut from)?;
            settings.group_leased_max = value(&mut from)?;
            settings.rate = decode_rate(&mut from)?;
            settings.group_rate = decode_rate(&mut from)?;
        }
        let mut push_version = 0;
        if !from.is_empty() {
            let concurrency;
            (push_version, concurrency) = (from.u64()?, from.u64()?);
            let (is_disabled, record) = (from.u8()? == 1, Bytes::new());
            let push = Push { version: push_version, concurrency, is_disabled, record };
            settings.push = (concurrency > 0).then(|| Arc::new(push));
        }
        Ok(Config { version, priorities, settings, shard, push_version })
    }
}

/// No jobs = there is no rate.
fn decode_rate(from: &mut Reader<'_>) -> Result<Option<Rate>, Error> {
    let rate = Rate { jobs: from.u64()?, per_ms: from.u64()?, burst: from.u64()? };
    Ok((rate.jobs > 0).then_some(rate))
}
