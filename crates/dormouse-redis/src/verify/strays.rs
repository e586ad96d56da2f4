//! Partitions that have keys in Redis, but are no topic's by the register: no server looks there.

use std::collections::{BTreeMap, BTreeSet};

use crate::limits::PARTITIONS_MAX;
use bytes::Bytes;
use dormouse_core::error::Error;

use super::Work;
use super::ask::{Failure, number};
use super::kind::PARTITION_UNREGISTERED;
use super::part::{Part, survive};
use super::register::Topics;
use super::report::Outcome;
use super::seen::Seen;
use crate::keys::topic_tag;

impl Work {
    /// True = the register has changed.
    pub(super) async fn check_strays(
        &mut self,
        seen: &Seen,
        topics: &Topics,
    ) -> Result<bool, Error> {
        let mut strays: BTreeMap<&str, BTreeSet<u16>> = BTreeMap::new();
        for (topic, index) in seen.partitions() {
            if topics.get(topic).is_none_or(|place| index >= place.partitions) {
                strays.entry(topic).or_default().insert(index);
            }
        }
        let mut changed = false;
        for (topic, indexes) in strays {
            // Partitions beyond those of a topic cannot be added: its shards lie side by side.
            let is_back = !topics.contains_key(topic) && self.options.mend;
            let is_back = is_back && self.register_again(topic, &indexes).await?;
            changed |= is_back;
            let outcome = if is_back { Outcome::Mended } else { Outcome::Wrong };
            for index in indexes {
                let tag = topic_tag(topic, index);
                self.tell_topic(PARTITION_UNREGISTERED, tag.as_bytes(), b"", outcome);
            }
        }
        Ok(changed)
    }

    /// Back to the place that the ids of the jobs tell; with new shards if they tell none.
    async fn register_again(
        &mut self,
        topic: &str,
        indexes: &BTreeSet<u16>,
    ) -> Result<bool, Error> {
        let Some(&last) = indexes.last() else { return Ok(false) };
        if last >= PARTITIONS_MAX {
            return Ok(false);
        }
        let partitions = u64::from((last + 1).max(self.tools.usual_partitions()));
        let mut firsts = BTreeSet::new();
        for &index in indexes {
            let shard = self.sample_shard(topic, index).await?;
            let first = shard.and_then(|shard| shard.checked_sub(u32::from(index)));
            firsts.extend(first.filter(|&first| first > 0));
        }
        for first in firsts {
            if self.restore(topic.as_bytes(), first, partitions).await? {
                return Ok(true);
            }
        }
        let topic = Bytes::copy_from_slice(topic.as_bytes());
        let args = [Bytes::from_static(b"give"), topic, number(partitions)];
        Ok(self.mend_register(&args).await? == Outcome::Mended)
    }

    /// The shard in the id of any job there.
    async fn sample_shard(&mut self, topic: &str, index: u16) -> Result<Option<u32>, Error> {
        let tag = topic_tag(topic, index);
        let mut part = Part::new(self, tag.clone(), 0, BTreeSet::new());
        let sampled = match part.ask("sample", &[]).await {
            Ok(mut answer) => answer.text().map_err(Failure::from),
            Err(failure) => Err(failure),
        };
        match sampled {
            Ok(id) => Ok(<[u8; 8]>::try_from(&id[..])
                .ok()
                .map(|[high, mid, low, ..]| u32::from_be_bytes([0, high, mid, low]))),
            Err(failure) => {
                survive(Err(failure), &tag, self)?;
                Ok(None)
            }
        }
    }
}
