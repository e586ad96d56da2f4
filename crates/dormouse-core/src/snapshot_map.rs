//! A map that can be snapshotted in a millisecond, however large it is.
//!
//! It consists of shards. A snapshot shares all of them; the first change of a shard afterwards
//! copies that shard alone, unless the snapshot is gone by then. A shard also grows alone: no
//! insert has to move a million entries.
//!
//! Keys that are used together are in one shard where that is known, because the first batch of
//! changes after a snapshot copies all the shards it touches.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use bytes::Bytes;
use foldhash::fast::RandomState;

use crate::Map;
use crate::job::JobId;
use crate::place::Class;
use crate::topic::{TopicName, TopicNo};

/// The numbers of shards, and the number of entries at which a map gets them. A small map has one,
/// so that it costs little. A shard of a million entries has some 64: a batch that touches
/// thousands of shards copies a quarter of them, in some milliseconds.
const SIZES: [(usize, usize); 2] = [(1 << 10, 1 << 10), (1 << 14, 1 << 15)];
/// Numbers in a row that are in one shard.
const BLOCK_BITS: u32 = 6;
/// The table of a shard that became empty is kept up to this capacity.
const EMPTY_CAPACITY_MAX: usize = 16;

/// A key of such a map.
pub trait ShardKey: Hash + Eq + Clone {
    /// Keys of one block are in one shard. Blocks should be small, and spread well by their lowest
    /// bits.
    fn block(&self, hasher: &RandomState) -> u64;
}

/// Jobs that were put together are mostly taken and acked together.
impl ShardKey for JobId {
    fn block(&self, _hasher: &RandomState) -> u64 {
        self.0 >> BLOCK_BITS
    }
}

impl ShardKey for TopicNo {
    fn block(&self, _hasher: &RandomState) -> u64 {
        u64::from(self.0 >> BLOCK_BITS)
    }
}

/// A lane. There may be many topics, or many priorities of one.
impl ShardKey for (TopicNo, Class) {
    fn block(&self, hasher: &RandomState) -> u64 {
        // Clients choose priorities: by a sum they could bring all lanes into one shard.
        hasher.hash_one((self.0.0 >> BLOCK_BITS, self.1.to_u64() >> BLOCK_BITS)) >> 32
    }
}

impl ShardKey for Bytes {
    fn block(&self, hasher: &RandomState) -> u64 {
        // A table uses the lowest and the highest bits of its own hash, so these are others.
        hasher.hash_one(self) >> 32
    }
}

impl ShardKey for TopicName {
    fn block(&self, hasher: &RandomState) -> u64 {
        hasher.hash_one(self) >> 32
    }
}

/// A key of a topic's job.
impl ShardKey for (TopicNo, Bytes) {
    fn block(&self, hasher: &RandomState) -> u64 {
        hasher.hash_one(self) >> 32
    }
}

/// See the module.
#[derive(Debug)]
pub struct SnapshotMap<K, V> {
    shards: Vec<Shard<K, V>>,
    hasher: RandomState,
    len: usize,
}

/// A part of the entries.
#[derive(Debug)]
struct Shard<K, V> {
    /// The entries, unless they are shared.
    own: Map<K, V>,
    /// The entries, which a snapshot may have too.
    shared: Option<Arc<Map<K, V>>>,
}

impl<K, V> Default for Shard<K, V> {
    fn default() -> Shard<K, V> {
        Shard { own: Map::default(), shared: None }
    }
}

impl<K, V> Shard<K, V> {
    fn entries(&self) -> &Map<K, V> {
        self.shared.as_deref().unwrap_or(&self.own)
    }

    fn share(&mut self) -> Shard<K, V> {
        let shared = match &self.shared {
            Some(shared) => Some(Arc::clone(shared)),
            None if self.own.is_empty() => None,
            None => Some(Arc::new(std::mem::take(&mut self.own))),
        };
        self.shared.clone_from(&shared);
        Shard { own: Map::default(), shared }
    }
}

impl<K: Clone, V: Clone> Shard<K, V> {
    fn entries_mut(&mut self) -> &mut Map<K, V> {
        if let Some(shared) = self.shared.take() {
            self.own = Arc::unwrap_or_clone(shared);
        }
        &mut self.own
    }
}

impl<K, V> Default for SnapshotMap<K, V> {
    fn default() -> SnapshotMap<K, V> {
        SnapshotMap { shards: vec![Shard::default()], hasher: RandomState::default(), len: 0 }
    }
}

impl<K, V> SnapshotMap<K, V> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.shards.iter().flat_map(|shard| shard.entries())
    }

    /// All keys, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// The map as it is now, for another thread. Dropping it may take long.
    pub fn snapshot(&mut self) -> SnapshotMap<K, V> {
        let shards = self.shards.iter_mut().map(Shard::share).collect();
        SnapshotMap { shards, hasher: self.hasher.clone(), len: self.len }
    }
}

impl<K: ShardKey, V> SnapshotMap<K, V> {
    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.shards[self.shard_of(key)].entries().get(key)
    }

    /// The position of the shard that has this key.
    fn shard_of(&self, key: &K) -> usize {
        match self.shards.len() {
            1 => 0,
            // A power of two.
            shards => key.block(&self.hasher) as usize & (shards - 1),
        }
    }
}

impl<K: ShardKey, V: Clone> SnapshotMap<K, V> {
    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = self.shard_of(key);
        let shard = &mut self.shards[at];
        // A shard that a snapshot has is not copied for nothing.
        if shard.shared.as_ref().is_some_and(|shared| !shared.contains_key(key)) {
            return None;
        }
        shard.entries_mut().get_mut(key)
    }

    /// The value of a key, to be changed; it is made if there is none.
    pub fn get_or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        self.grow();
        let at = self.shard_of(&key);
        let len = &mut self.len;
        self.shards[at].entries_mut().entry(key).or_insert_with(|| {
            *len += 1;
            value()
        })
    }

    /// Sets the value of a key and gives the one before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.grow();
        let at = self.shard_of(&key);
        let before = self.shards[at].entries_mut().insert(key, value);
        self.len += usize::from(before.is_none());
        before
    }

    /// Removes a key and gives its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.shard_of(key);
        let shard = &mut self.shards[at];
        if shard.shared.as_ref().is_some_and(|shared| !shared.contains_key(key)) {
            return None;
        }
        let entries = shard.entries_mut();
        let value = entries.remove(key)?;
        self.len -= 1;
        if entries.is_empty() && entries.capacity() > EMPTY_CAPACITY_MAX {
            *entries = Map::default();
        }
        Some(value)
    }

    /// All entries in no order, their values to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.shards.iter_mut().flat_map(|shard| shard.entries_mut())
    }

    /// Drops entries that are not to be kept: those of one part of the map, from this one on, up
    /// to about `entries_max` looked at, of which an empty shard counts as one. Gives where to go
    /// on; `None` = the end was reached.
    pub fn retain_portion(
        &mut self,
        from: usize,
        entries_max: usize,
        mut keep: impl FnMut(&K, &V) -> bool,
    ) -> Option<usize> {
        let mut looked_at = 0;
        for at in from..self.shards.len() {
            if looked_at >= entries_max {
                return Some(at);
            }
            let shard = &mut self.shards[at];
            let before = shard.entries().len();
            looked_at += before.max(1);
            if shard.entries().iter().any(|(key, value)| !keep(key, value)) {
                let entries = shard.entries_mut();
                entries.retain(|key, value| keep(key, value));
                self.len -= before - entries.len();
            }
        }
        None
    }

    /// Gives a map that is no longer small its shards. That moves at most 32,768 entries, once.
    fn grow(&mut self) {
        let has = |shards: usize| self.shards.len() >= shards;
        let larger = SIZES.iter().find(|(shards, entries)| !has(*shards) && self.len >= *entries);
        let Some(&(shards, _)) = larger else { return };
        let fresh = (0..shards).map(|_| Shard::default()).collect();
        for mut shard in std::mem::replace(&mut self.shards, fresh) {
            for (key, value) in std::mem::take(shard.entries_mut()) {
                let at = self.shard_of(&key);
                self.shards[at].own.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    impl ShardKey for u64 {
        fn block(&self, hasher: &RandomState) -> u64 {
            hasher.hash_one(self) >> 32
        }
    }

    fn sorted(map: &SnapshotMap<u64, u64>) -> BTreeMap<u64, u64> {
        let found: BTreeMap<u64, u64> = map.iter().map(|(key, value)| (*key, *value)).collect();
        assert_eq!(found.len(), map.len());
        assert_eq!(map.keys().count(), map.len());
        found
    }

    /// Changes that a fixed sequence of numbers chooses, on the map and on a plain one.
    fn change(map: &mut SnapshotMap<u64, u64>, plain: &mut BTreeMap<u64, u64>, number: u64) {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let key = key % 60_000;
        match number % 5 {
            0 | 1 => assert_eq!(map.insert(key, number), plain.insert(key, number)),
            2 => assert_eq!(map.remove(&key), plain.remove(&key)),
            3 => {
                let (value, expected) = (map.get_mut(&key), plain.get_mut(&key));
                assert_eq!(value.as_deref(), expected.as_deref());
                if let (Some(value), Some(expected)) = (value, expected) {
                    (*value, *expected) = (*value + 1, *expected + 1);
                }
            }
            _ => {
                *map.get_or_insert_with(key, || 7) += 1;
                *plain.entry(key).or_insert(7) += 1;
            }
        }
        assert_eq!(map.get(&key), plain.get(&key));
    }

    #[test]
    fn it_is_a_map_and_its_snapshots_do_not_change() {
        let (mut map, mut plain) = (SnapshotMap::default(), BTreeMap::new());
        let mut snapshots = Vec::new();
        for number in 0..200_000 {
            if number % 17_000 == 0 {
                snapshots.push((map.snapshot(), plain.clone()));
            }
            if number % 51_000 == 0 {
                // Some go early: their shards are taken back, not copied.
                snapshots.pop();
            }
            change(&mut map, &mut plain, number);
        }
        assert_eq!(sorted(&map), plain);
        assert_eq!(map.shards.len(), SIZES[1].0, "{} entries", map.len());
        assert!(snapshots.len() > 7);
        for (snapshot, expected) in &snapshots {
            assert_eq!(sorted(snapshot), *expected);
        }
    }

    #[test]
    fn a_change_copies_one_shard_and_none_without_a_snapshot() {
        let mut map: SnapshotMap<u64, Arc<u64>> = SnapshotMap::default();
        for key in 0..100_000 {
            map.insert(key, Arc::new(key));
        }
        let uses = |map: &SnapshotMap<u64, Arc<u64>>| {
            map.iter().filter(|(_, value)| Arc::strong_count(value) > 1).count()
        };
        let snapshot = map.snapshot();
        assert_eq!(uses(&map), 0, "nothing is copied by a snapshot");
        assert!(map.get_mut(&100_000).is_none() && map.remove(&100_000).is_none());
        assert_eq!(uses(&map), 0, "nothing is copied for a key that is not there");
        map.get_mut(&5).unwrap();
        assert!((1..100).contains(&uses(&map)), "{} were copied", uses(&map));
        drop(snapshot);
        map.get_mut(&6).unwrap();
        assert_eq!(uses(&map), 0);
    }

    #[test]
    fn portions_of_a_retain_add_up_and_leave_snapshots_alone() {
        let mut map: SnapshotMap<u64, u64> = SnapshotMap::default();
        (0..10_000).for_each(|key| assert!(map.insert(key, key).is_none()));
        let snapshot = map.snapshot();
        let (mut from, mut portions) = (Some(0), 0);
        while let Some(at) = from {
            from = map.retain_portion(at, 500, |key, _| key % 2 == 0);
            portions += 1;
        }
        assert!((15..30).contains(&portions), "{portions}");
        assert!(map.len() == 5_000 && map.keys().all(|key| key % 2 == 0));
        assert_eq!(sorted(&snapshot).len(), 10_000);
    }

    #[test]
    fn numbers_in_a_row_are_in_one_shard_and_all_shards_are_used() {
        let mut map: SnapshotMap<JobId, u64> = SnapshotMap::default();
        (0..1_000_000).for_each(|id| assert!(map.insert(JobId(id), id).is_none()));
        let sizes: Vec<usize> = map.shards.iter().map(|shard| shard.own.len()).collect();
        assert!(sizes.iter().all(|size| *size <= 128), "{:?}", sizes.iter().max());
        let _snapshot = map.snapshot();
        (5_000..9_000).for_each(|id| *map.get_mut(&JobId(id)).unwrap() += 1);
        let copied = map.shards.iter().filter(|shard| !shard.own.is_empty()).count();
        assert!(copied < 70, "{copied}");
    }

    #[test]
    fn an_emptied_map_gives_its_memory_back() {
        let mut map: SnapshotMap<u64, u64> = SnapshotMap::default();
        (0..1_000_000).for_each(|key| assert!(map.insert(key, key).is_none()));
        let capacities = |map: &SnapshotMap<u64, u64>| -> Vec<usize> {
            map.shards.iter().map(|shard| shard.own.capacity()).collect()
        };
        assert!(capacities(&map).iter().all(|capacity| *capacity > EMPTY_CAPACITY_MAX));
        (0..1_000_000).for_each(|key| assert!(map.remove(&key).is_some()));
        assert!(map.is_empty() && map.iter().next().is_none());
        assert!(capacities(&map).iter().all(|capacity| *capacity <= EMPTY_CAPACITY_MAX));
    }
}
