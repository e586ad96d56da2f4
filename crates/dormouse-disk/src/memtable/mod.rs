//! The memtable: arrivals and departures since the last flush.
//!
//! Every entry carries its net weight: +1 per arrival at its place, -1 per departure from it. An
//! entry without a job at weight 0 disappears; at -1 it is a tombstone for a job in an older
//! source. No look-up decides it, so replay, which reads no run, comes to the same table.

mod arena;
mod entries;
mod ids;
mod packed;
mod spare;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Bound;

use dormouse_core::Map;
use dormouse_core::job::{Job, JobId};
use dormouse_core::place::{Class, Place};
use dormouse_core::timeline::BatchNo;
use dormouse_core::topic::TopicNo;

use crate::codec::{decode_payload, encode_payload, payload_key};
use crate::run::key_hash;
use arena::{Arena, Span};
use entries::Entries;
use ids::Ids;
use packed::PackedPlace;
use spare::{Spare, SpareStore};

/// A position within a lane.
pub(crate) type Key = (u64, JobId);

/// A memtable's entry for one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemtableEntry {
    /// The encoded job; an empty one is a tombstone.
    job: Span,
    /// The batch that put the job, counted from the table's `born_base`; 0 = durable already.
    put_batch: u32,
    weight: i8,
}

impl MemtableEntry {
    const TOMBSTONE: MemtableEntry = MemtableEntry { job: Span::EMPTY, put_batch: 0, weight: -1 };

    pub(crate) fn is_job(&self) -> bool {
        !self.job.is_empty()
    }
}

/// A lane's running count: the weights of everything due up to an instant that moves with the
/// questions asked. Time mostly moves on a little, so each entry is counted about once.
#[derive(Clone, Copy, Debug, Default)]
struct LaneCount {
    entries: usize,
    until: u64,
    weight: i64,
}

/// An id that has a key, and whether it is a hold.
type KeyedId = (JobId, bool);

/// A topic with more entries is purged by a pass over the whole table: milliseconds, once.
const PURGE_ONE_BY_ONE_MAX: usize = 1_024;

/// How much older than the first birth a table sees another may be.
const BIRTHS_BELOW: BatchNo = 1 << 31;

/// Entries by place.
#[derive(Debug)]
pub(crate) struct Memtable {
    entries: Entries,
    lanes: BTreeMap<(TopicNo, Class), LaneCount>,
    ids: Ids,
    keys: Map<u64, KeyedId>,
    /// Where several have one hash: a hold that is over and the next job of its key, mostly.
    more_keys: Vec<(u64, KeyedId)>,
    arena: Arena,
    /// Births are counted from here, to need only four bytes each.
    born_base: BatchNo,
    /// Jobs that arrived since the journal last asked, in order.
    arrivals: Vec<(Place, Span)>,
    /// Where its memory goes in the end.
    spare: SpareStore,
}

impl Drop for Memtable {
    fn drop(&mut self) {
        self.spare.give(Spare {
            chunks: self.arena.take_chunks(),
            lists: self.entries.take_lists(),
            ids: self.ids.take_buffer(),
            keys: std::mem::take(&mut self.keys),
        });
    }
}

impl Memtable {
    /// An empty table, when `next_id` is the next new job's. Its memory is for about `bytes`.
    pub(crate) fn new(bytes: usize, next_id: u64) -> Memtable {
        // At the usual size the tree takes 4,096 entries, which fit the cache. Tests have fewer.
        let tree_max = (bytes / 12_288).clamp(2, 1 << 12);
        Memtable {
            entries: Entries::new(tree_max),
            lanes: BTreeMap::new(),
            ids: Ids::new(next_id),
            keys: Map::default(),
            more_keys: Vec::new(),
            arena: Arena::default(),
            born_base: 0,
            arrivals: Vec::new(),
            spare: SpareStore::default(),
        }
    }

    /// The table after this one, which is about as large: tables that grow step by step are copied
    /// each time, which takes milliseconds once there is much in them. It uses the memory of
    /// tables that are gone.
    pub(crate) fn successor(&self, bytes: usize, next_id: u64) -> Memtable {
        let mut next = Memtable::new(bytes, next_id);
        let Spare { chunks, lists, ids, keys } =
            self.spare.take(self.arena.len() + 1, self.entries.lists() + 1);
        next.arena = Arena::with_spare(chunks);
        next.entries.set_spare(lists);
        next.ids.reserve_like(&self.ids, ids);
        next.keys = keys;
        next.keys.reserve(self.keys.len());
        next.spare = self.spare.clone();
        next
    }

    /// Brings new entries into order. To be called before all that reads entries; what changes them
    /// does so by itself.
    pub(crate) fn settle(&mut self) {
        self.entries.settle();
    }

    /// A job comes to rest.
    pub(crate) fn arrive(&mut self, place: Place, job: &Job, put_batch: BatchNo) {
        let about = job.content.bytes() as usize + 256;
        let span = self.arena.store(about, |out| encode_payload(job, out));
        self.note_key(place, job);
        let put_batch = self.shorten(put_batch);
        self.arrivals.push((place, span));
        let packed = PackedPlace::of(&place);
        // Most jobs are new. A search in vain would go through every list of entries.
        let is_known = !self.ids.is_new(place.id) && self.ids.mentions(place);
        let known = if is_known { self.entries.get_mut(&packed) } else { None };
        match known {
            Some(slot) => {
                debug_assert!(!slot.is_job(), "two jobs at {place:?}");
                *slot = MemtableEntry { weight: slot.weight + 1, job: span, put_batch };
                self.count(place, 1, 0);
            }
            None => {
                self.entries.insert(packed, MemtableEntry { weight: 1, job: span, put_batch });
                self.ids.insert(place);
                self.count(place, 1, 1);
            }
        }
    }

    /// A job can be found by its key.
    fn note_key(&mut self, place: Place, job: &Job) {
        let Some(key) = job.key() else { return };
        let named = (job.id, place.class == Class::HOLD);
        let hash = key_hash(place.topic, key);
        // A purge leaves keys behind; what no entry mentions need not be found.
        if let Some(before) = self.keys.insert(hash, named)
            && before != named
            && self.ids.places(before.0).next().is_some()
        {
            self.more_keys.push((hash, before));
        }
    }

    fn shorten(&mut self, put_batch: BatchNo) -> u32 {
        if put_batch == 0 {
            return 0;
        }
        if self.born_base == 0 {
            // A job born long before this table may come back to it, so there is room below too.
            self.born_base = put_batch.saturating_sub(BIRTHS_BELOW).max(1) - 1;
        }
        // A put two billion batches old is durable, and a table that saw two billion would have
        // been frozen long before.
        u32::try_from(put_batch.saturating_sub(self.born_base)).unwrap_or(u32::MAX)
    }

    /// The batch that put the job of a slot.
    pub(crate) fn put_batch(&self, slot: &MemtableEntry) -> BatchNo {
        if slot.put_batch == 0 { 0 } else { self.born_base + u64::from(slot.put_batch) }
    }

    /// The encoded jobs that arrived since the last call, in order.
    pub(crate) fn take_arrivals(&mut self) -> Vec<(Place, Span)> {
        std::mem::take(&mut self.arrivals)
    }

    /// Gives the list back, so that its room is used again.
    pub(crate) fn return_arrivals(&mut self, mut arrivals: Vec<(Place, Span)>) {
        arrivals.clear();
        self.arrivals = arrivals;
    }

    /// An encoded job.
    pub(crate) fn encoded(&self, span: Span) -> &[u8] {
        self.arena.get(span)
    }

    /// A job leaves its place otherwise than at the head of its lane.
    pub(crate) fn depart(&mut self, place: Place) {
        if self.ids.mentions(place) {
            return self.depart_known(place);
        }
        self.entries.insert(PackedPlace::of(&place), MemtableEntry::TOMBSTONE);
        self.ids.insert(place);
        self.count(place, -1, 1);
    }

    /// The same where the place has an entry.
    fn depart_known(&mut self, place: Place) {
        self.forget_key(place);
        let Some(slot) = self.entries.get_mut(&PackedPlace::of(&place)) else { return };
        if slot.weight == 1 {
            return self.drop_entry(place);
        }
        *slot = MemtableEntry { weight: slot.weight - 1, ..MemtableEntry::TOMBSTONE };
        self.count(place, -1, 0);
    }

    /// The entry at the head of a lane was consumed together with its equals in older sources.
    pub(crate) fn pop(&mut self, place: Place) {
        self.forget_key(place);
        self.drop_entry(place);
    }

    fn drop_entry(&mut self, place: Place) {
        if let Some(slot) = self.entries.remove(&PackedPlace::of(&place)) {
            self.ids.remove(place);
            self.count(place, -i64::from(slot.weight), -1);
        }
    }

    /// A job's key is no longer to be found through this entry.
    fn forget_key(&mut self, place: Place) {
        self.settle();
        let hash = self.payload(place).and_then(payload_key).map(|key| key_hash(place.topic, key));
        let Some(hash) = hash else { return };
        let gone = (hash, (place.id, place.class == Class::HOLD));
        if self.keys.get(&hash) != Some(&gone.1) {
            self.more_keys.retain(|named| *named != gone);
            return;
        }
        self.keys.remove(&hash);
        if let Some(index) = self.more_keys.iter().position(|named| named.0 == hash) {
            self.keys.insert(hash, self.more_keys.swap_remove(index).1);
        }
    }

    fn count(&mut self, place: Place, weight: i64, entries: isize) {
        let lane = self.lanes.entry((place.topic, place.class)).or_default();
        lane.entries = lane.entries.saturating_add_signed(entries);
        if place.due_at <= lane.until {
            lane.weight += weight;
        }
        if lane.entries == 0 {
            self.lanes.remove(&(place.topic, place.class));
        }
    }

    /// Everything of a topic goes.
    pub(crate) fn purge(&mut self, topic: TopicNo) {
        self.settle();
        let lanes: Vec<_> = self.classes(topic, Class::FIRST).map(|class| (topic, class)).collect();
        let count: usize =
            lanes.iter().filter_map(|lane| self.lanes.get(lane)).map(|lane| lane.entries).sum();
        let first = PackedPlace::new(topic, Class::FIRST, 0, JobId(0));
        let last = PackedPlace::new(topic, Class::LAST, u64::MAX, JobId(u64::MAX));
        if count <= PURGE_ONE_BY_ONE_MAX {
            let within = self.entries.within(first, last).map(|(packed, _)| packed.place());
            let places: Vec<Place> = within.collect();
            places.into_iter().for_each(|place| self.pop(place));
            return;
        }
        // Keys stay behind: an index names ids that had a key once, and these are not found.
        self.entries.remove_within(first, last);
        self.ids.remove_topic(topic);
        // These are searched one by one, so they must not grow with every purge.
        let ids = &self.ids;
        self.more_keys.retain(|(_, named)| ids.places(named.0).next().is_some());
        for lane in lanes {
            self.lanes.remove(&lane);
        }
    }

    /// The first entry of a lane at or after `from`.
    pub(crate) fn first(
        &self,
        topic: TopicNo,
        class: Class,
        from: Key,
    ) -> Option<(Place, MemtableEntry)> {
        let from = PackedPlace::new(topic, class, from.0, from.1);
        in_lane(self.entries.first(Bound::Included(from)), topic, class)
    }

    /// The first entry of a lane after `key`.
    pub(crate) fn after(
        &self,
        topic: TopicNo,
        class: Class,
        key: Key,
    ) -> Option<(Place, MemtableEntry)> {
        let after = PackedPlace::new(topic, class, key.0, key.1);
        in_lane(self.entries.first(Bound::Excluded(after)), topic, class)
    }

    /// The position of the last entry of a lane before `key`.
    pub(crate) fn before(&self, topic: TopicNo, class: Class, key: Key) -> Option<Key> {
        let first = PackedPlace::new(topic, class, 0, JobId(0));
        let before = PackedPlace::new(topic, class, key.0, key.1);
        let place = self.entries.last(first, before)?.place();
        Some((place.due_at, place.id))
    }

    /// The entry at a place.
    pub(crate) fn get(&self, place: Place) -> Option<MemtableEntry> {
        self.entries.get(&PackedPlace::of(&place)).copied()
    }

    /// The encoded job at a place.
    pub(crate) fn payload(&self, place: Place) -> Option<&[u8]> {
        let slot = self.entries.get(&PackedPlace::of(&place))?;
        slot.is_job().then(|| self.arena.get(slot.job))
    }

    /// The job at a place.
    pub(crate) fn job(&self, place: Place) -> Option<Job> {
        // The table encoded it itself, so it can be decoded.
        self.payload(place).and_then(|payload| decode_payload(place.id, payload))
    }

    /// Puts another content under the job at a place; nothing else changes.
    pub(crate) fn rewrite(&mut self, place: Place, job: &Job) {
        let about = job.content.bytes() as usize + 256;
        let span = self.arena.store(about, |out| encode_payload(job, out));
        if let Some(slot) = self.entries.get_mut(&PackedPlace::of(&place)) {
            slot.job = span;
        }
        self.note_key(place, job);
    }

    /// All places that mention an id.
    pub(crate) fn places(&self, id: JobId) -> impl Iterator<Item = Place> + '_ {
        self.ids.places(id)
    }

    /// Ids of jobs and holds whose key has this hash.
    pub(crate) fn by_key(&self, hash: u64) -> Vec<(JobId, bool)> {
        let Some(named) = self.keys.get(&hash) else { return Vec::new() };
        let more = self.more_keys.iter().filter(|named| named.0 == hash).map(|named| named.1);
        std::iter::once(*named).chain(more).collect()
    }

    /// Classes of a topic that have entries here, from this one on, ascending.
    pub(crate) fn classes(&self, topic: TopicNo, from: Class) -> impl Iterator<Item = Class> + '_ {
        self.lanes
            .range((topic, from)..)
            .map(|(lane, _)| *lane)
            .take_while(move |lane| lane.0 == topic)
            .map(|lane| lane.1)
    }

    /// The weight of a lane's entries with `due_at <= until`.
    pub(crate) fn rank(&mut self, topic: TopicNo, class: Class, until: u64) -> i64 {
        self.entries.settle();
        let Some(lane) = self.lanes.get_mut(&(topic, class)) else { return 0 };
        let (low, high) = (lane.until.min(until), lane.until.max(until));
        let sign = if until >= lane.until { 1 } else { -1 };
        if low < high {
            let start = PackedPlace::new(topic, class, low + 1, JobId(0));
            let end = PackedPlace::new(topic, class, high, JobId(u64::MAX));
            let between = sum(self.entries.within(start, end));
            lane.weight += sign * between;
            lane.until = until;
        }
        lane.weight
    }

    /// Adds the weights of a lane's entries within steps of time: the first lasts from `from`
    /// until before the first of `ends`, each other until before the next.
    pub(crate) fn weigh_steps(
        &self,
        topic: TopicNo,
        class: Class,
        from: Key,
        ends: &[u64],
        counts: &mut [i64],
    ) {
        let Some(last) = ends.last().and_then(|end| end.checked_sub(1)) else { return };
        let start = PackedPlace::new(topic, class, from.0, from.1);
        let end = PackedPlace::new(topic, class, last, JobId(u64::MAX));
        if start > end {
            return;
        }
        for (packed, slot) in self.entries.within(start, end) {
            let step = ends.partition_point(|end| *end <= packed.place().due_at);
            if let Some(count) = counts.get_mut(step) {
                *count += i64::from(slot.weight);
            }
        }
    }

    /// The weight of a lane's entries within two bounds, counted one by one.
    pub(crate) fn weigh(&self, topic: TopicNo, class: Class, from: Key, until: u64) -> i64 {
        let start = PackedPlace::new(topic, class, from.0, from.1);
        let end = PackedPlace::new(topic, class, until, JobId(u64::MAX));
        if start > end { 0 } else { sum(self.entries.within(start, end)) }
    }

    /// All entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Place, i32, Option<&[u8]>)> {
        self.entries.iter().map(|(packed, slot)| {
            let payload = slot.is_job().then(|| self.arena.get(slot.job));
            (packed.place(), i32::from(slot.weight), payload)
        })
    }

    /// Entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.bytes() + self.entries.bytes() + self.ids.bytes()
    }
}

fn in_lane(
    entry: Option<(PackedPlace, MemtableEntry)>,
    topic: TopicNo,
    class: Class,
) -> Option<(Place, MemtableEntry)> {
    let (packed, slot) = entry?;
    let place = packed.place();
    (place.topic == topic && place.class == class).then_some((place, slot))
}

fn sum(entries: impl Iterator<Item = (PackedPlace, MemtableEntry)>) -> i64 {
    entries.map(|(_, slot)| i64::from(slot.weight)).sum()
}
