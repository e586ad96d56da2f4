//! Finds partitions that have keys, but are not registered: no server uses them.

use std::collections::{BTreeMap, BTreeSet};

use crate::limits::PARTITIONS_MAX;
use bytes::Bytes;
use dormouse_core::error::Error;

use super::Verifier;
use super::call::Failure;
use super::checker::{Checker, note_failure};
use super::key_listing::KeyListing;
use super::kind::PARTITION_UNREGISTERED;
use super::register::Topics;
use super::report::ProblemStatus;
use crate::keys::topic_tag;
use crate::wire::number;

impl Verifier {
    /// True = the register was changed.
    pub(super) async fn check_unregistered(
        &mut self,
        listing: &KeyListing,
        topics: &Topics,
    ) -> Result<bool, Error> {
        let mut unregistered: BTreeMap<&str, BTreeSet<u16>> = BTreeMap::new();
        for (topic, index) in listing.partitions() {
            if topics.get(topic).is_none_or(|registration| index >= registration.partitions) {
                unregistered.entry(topic).or_default().insert(index);
            }
        }
        let mut changed = false;
        for (topic, indexes) in unregistered {
            // Partitions cannot be added to a registered topic: its shards are consecutive.
            let is_back = !topics.contains_key(topic) && self.options.mend;
            let is_back = is_back && self.register_again(topic, &indexes).await?;
            changed |= is_back;
            let status = if is_back { ProblemStatus::Mended } else { ProblemStatus::Wrong };
            for index in indexes {
                let tag = topic_tag(topic, index);
                self.report_topic(PARTITION_UNREGISTERED, tag.as_bytes(), b"", status);
            }
        }
        Ok(changed)
    }

    /// Registers the topic with the shards in the ids of its jobs; with new ones if there are none.
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
        Ok(self.mend_register(&args).await? == ProblemStatus::Mended)
    }

    /// The shard of the partition: in its configuration, or in the id of any job.
    async fn sample_shard(&mut self, topic: &str, index: u16) -> Result<Option<u32>, Error> {
        let tag = topic_tag(topic, index);
        let mut checker = Checker::new(self, tag.clone(), 0, BTreeSet::new());
        let sampled = match checker.call("sample", &[]).await {
            Ok(_) if checker.config.shard != 0 => return Ok(Some(checker.config.shard)),
            Ok(mut reply) => reply.text().map_err(Failure::from),
            Err(failure) => Err(failure),
        };
        match sampled {
            Ok(id) => Ok(<[u8; 8]>::try_from(&id[..])
                .ok()
                .map(|[high, mid, low, ..]| u32::from_be_bytes([0, high, mid, low]))),
            Err(failure) => {
                note_failure(Err(failure), &tag, self)?;
                Ok(None)
            }
        }
    }
}
