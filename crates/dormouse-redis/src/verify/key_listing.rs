//! Lists our keys on all primaries.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use dormouse_core::error::Error;

use super::Verifier;
use super::call::{Failure, ReplyParts};
use crate::keys::{PREFIX, lock_tag, topic_tag};

/// The partitions that have keys, each with the priorities that have a zset.
#[derive(Debug, Default)]
pub(super) struct KeyListing(BTreeMap<String, BTreeSet<u32>>);

impl KeyListing {
    fn add(&mut self, key: &[u8]) {
        // `dormouse:{tag}:name`; other programs may have keys that begin like ours.
        let Ok(key) = std::str::from_utf8(key) else { return };
        let Some(rest) = key.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('{')) else {
            return;
        };
        let Some((tag, name)) = rest.split_once("}:") else { return };
        let priorities = self.0.entry(tag.to_owned()).or_default();
        if let Some(priority) = name.strip_prefix('z').and_then(|text| text.parse().ok()) {
            priorities.insert(priority);
        }
    }

    /// The priorities that have a zset in this partition.
    pub(super) fn priorities(&self, topic: &str, index: u16) -> BTreeSet<u32> {
        self.0.get(&topic_tag(topic, index)).cloned().unwrap_or_default()
    }

    /// Topics and partitions that have keys.
    pub(super) fn partitions(&self) -> impl Iterator<Item = (&str, u16)> {
        let of_topics = self.0.keys().filter(|tag| !tag.starts_with('-'));
        of_topics.filter_map(|tag| {
            let (topic, index) = tag.rsplit_once('/')?;
            Some((topic, index.parse().ok()?))
        })
    }

    /// Partitions of locks that have keys.
    pub(super) fn lock_partitions(&self) -> Vec<u16> {
        let prefix = lock_tag(0);
        let prefix = prefix.trim_end_matches('0');
        let tags = self.0.keys().filter_map(|tag| tag.strip_prefix(prefix)?.parse().ok());
        tags.collect()
    }
}

impl Verifier {
    /// Lists our keys. Without permission to SCAN, only registered partitions are checked.
    pub(super) async fn list_keys(&mut self) -> Result<KeyListing, Error> {
        let mut listing = KeyListing::default();
        match self.list_all(&mut listing).await {
            Ok(()) => {}
            Err(Failure::Script(text)) => {
                let text = format!("unregistered partitions and zsets: SCAN failed: {text}");
                self.report.unchecked.push(text);
            }
            Err(Failure::Fatal(error)) => return Err(error),
        }
        Ok(listing)
    }

    async fn list_all(&self, listing: &mut KeyListing) -> Result<(), Failure> {
        for slot in self.slots_of_primaries().await? {
            let mut cursor = Bytes::from_static(b"0");
            loop {
                let args =
                    vec![Bytes::from_static(b"scan"), cursor, Bytes::from(format!("{PREFIX}{{"))];
                let mut reply = self.tools.run(slot, &self.tools.keys, Vec::new(), args).await?;
                cursor = reply.text()?;
                let mut keys = reply.list()?;
                while !keys.is_empty() {
                    listing.add(&keys.text()?);
                }
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok(())
    }

    /// One slot of each primary.
    async fn slots_of_primaries(&self) -> Result<Vec<u16>, Failure> {
        if !self.tools.client.is_cluster() {
            return Ok(vec![0]);
        }
        let args = vec![Bytes::from_static(b"primaries")];
        let mut ranges = self.tools.run(0, &self.tools.keys, Vec::new(), args).await?;
        let mut slots = BTreeMap::new();
        while !ranges.is_empty() {
            let (slot, primary) = first_slot(&mut ranges.list()?)?;
            slots.entry(primary).or_insert(slot);
        }
        Ok(slots.into_values().collect())
    }
}

/// The first slot of a range and the name of its primary: host, port, id.
fn first_slot(range: &mut ReplyParts) -> Result<(u16, String), Error> {
    let number = |text: Bytes| std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
    let first = number(range.text()?);
    range.text()?;
    let mut primary = range.list()?;
    let name = [primary.text()?, primary.text()?];
    let slot = first.ok_or_else(|| crate::wire::malformed("a slot is not a number"))?;
    Ok((slot, name.map(|part| part.escape_ascii().to_string()).join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_parsed() {
        let mut listing = KeyListing::default();
        for key in [
            "dormouse:{a/b/1}:s",
            "dormouse:{a/b/1}:z1024",
            "dormouse:{a/b/1}:z7",
            "dormouse:{-lock/3}:j",
            "dormouse:{-topics}:t",
            "dormouse:{x",
            "other:{a/0}:s",
        ] {
            listing.add(key.as_bytes());
        }
        assert_eq!(listing.partitions().collect::<Vec<_>>(), [("a/b", 1)]);
        assert_eq!(listing.priorities("a/b", 1), BTreeSet::from([7, 1024]));
        assert_eq!(listing.lock_partitions(), [3]);
    }
}
