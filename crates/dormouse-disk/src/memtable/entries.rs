//! The sorted entries of a memtable: a list of the newest, a small tree for new ones, sorted chunks
//! for the rest.
//!
//! Most entries are put once and read once, by the flush. One tree over all of them misses the
//! cache at every insert, so only a few thousand live in a tree; when it is full it becomes a
//! sorted chunk, and chunks of about one size become one. While nobody reads, as in a bulk load,
//! even that is too much: new entries are kept in a list as they come. `settle` brings it into
//! order, and must be called before any reading. Entries of a chunk are changed in place; a removed
//! one leaves a pointer to the next that is alive.

use std::cmp::{Ordering, Reverse};
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Bound;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::MemtableEntry;
use super::packed::PackedPlace;
use crate::sort::sort;

/// Chunks up to this many times the tree's size are merged: a merge stays below a millisecond.
const MERGED_MAX: usize = 4;

/// Entries in a row.
pub(super) type EntryList = Vec<(PackedPlace, MemtableEntry)>;

/// So many times the tree's entries are kept unsorted: they are sorted within a millisecond.
const FRESH_MAX: usize = 4;

/// A sorted map of places.
#[derive(Debug)]
pub(crate) struct Entries {
    /// In the order they came.
    fresh: EntryList,
    tree: BTreeMap<PackedPlace, MemtableEntry>,
    tree_max: usize,
    chunks: Vec<Chunk>,
    len: usize,
    /// Entries of all chunks, removed ones included: those keep their room.
    chunk_slots: usize,
    /// Empty lists to use first.
    spare: Vec<EntryList>,
}

/// Bytes of an entry in the tree at its usual fill, and in a chunk with its pointer.
const TREE_BYTES: usize = 60;
const SLOT_BYTES: usize = size_of::<(PackedPlace, MemtableEntry)>() + size_of::<AtomicU32>();

#[derive(Debug)]
struct Chunk {
    entries: EntryList,
    /// From each position the first at or after it that may be alive; empty = all are alive.
    /// Shortened by each reader that walks it; any number may at once.
    alive: Vec<AtomicU32>,
}

type SortedSource<'e> = Box<dyn Iterator<Item = (PackedPlace, MemtableEntry)> + 'e>;

/// The next entry of one of several sorted sources.
#[derive(Clone, Copy, Debug)]
struct SourceHead {
    at: PackedPlace,
    index: usize,
    slot: MemtableEntry,
}

impl PartialEq for SourceHead {
    fn eq(&self, other: &SourceHead) -> bool {
        self.at == other.at
    }
}

impl Eq for SourceHead {}

impl PartialOrd for SourceHead {
    fn partial_cmp(&self, other: &SourceHead) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SourceHead {
    fn cmp(&self, other: &SourceHead) -> Ordering {
        self.at.cmp(&other.at)
    }
}

impl Entries {
    /// An empty map whose tree takes at most this many entries.
    pub(crate) fn new(tree_max: usize) -> Entries {
        let (fresh, tree, chunks) = (Vec::new(), BTreeMap::new(), Vec::new());
        Entries { fresh, tree, tree_max, chunks, len: 0, chunk_slots: 0, spare: Vec::new() }
    }

    /// Empty lists to use first.
    pub(super) fn set_spare(&mut self, spare: Vec<EntryList>) {
        self.spare = spare;
    }

    /// Takes all lists; nothing is here any more.
    pub(super) fn take_lists(&mut self) -> Vec<EntryList> {
        let mut lists = std::mem::take(&mut self.spare);
        lists.push(std::mem::take(&mut self.fresh));
        lists.extend(std::mem::take(&mut self.chunks).into_iter().map(|chunk| chunk.entries));
        // Small ones are not worth it.
        lists.retain(|list| list.capacity() >= self.tree_max);
        (self.len, self.chunk_slots) = (0, 0);
        self.tree.clear();
        lists
    }

    /// Lists in use.
    pub(super) fn lists(&self) -> usize {
        self.chunks.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        (self.fresh.len() + self.chunk_slots) * SLOT_BYTES + self.tree.len() * TREE_BYTES
    }

    pub(crate) fn get(&self, at: &PackedPlace) -> Option<&MemtableEntry> {
        self.check_settled();
        self.tree.get(at).or_else(|| self.chunks.iter().find_map(|chunk| chunk.get(at)))
    }

    pub(crate) fn get_mut(&mut self, at: &PackedPlace) -> Option<&mut MemtableEntry> {
        self.settle();
        if let Some(slot) = self.tree.get_mut(at) {
            return Some(slot);
        }
        self.chunks.iter_mut().find_map(|chunk| {
            let position = chunk.position(at)?;
            Some(&mut chunk.entries[position].1)
        })
    }

    /// Adds an entry at a place that has none.
    pub(crate) fn insert(&mut self, at: PackedPlace, slot: MemtableEntry) {
        if self.fresh.len() >= FRESH_MAX * self.tree_max {
            self.settle();
        }
        self.fresh.push((at, slot));
        self.len += 1;
    }

    fn check_settled(&self) {
        debug_assert!(self.fresh.is_empty(), "entries are read before they are settled");
    }

    /// Brings new entries into order, before they are read.
    pub(crate) fn settle(&mut self) {
        if self.fresh.is_empty() {
            return;
        }
        if self.fresh.len() >= self.tree_max {
            let next = self.spare.pop().unwrap_or_default();
            let mut entries = std::mem::replace(&mut self.fresh, next);
            sort_entries(&mut entries);
            self.add_chunk(entries);
            return;
        }
        for (at, slot) in self.fresh.drain(..) {
            let before = self.tree.insert(at, slot);
            debug_assert!(before.is_none(), "an entry is there already");
        }
        if self.tree.len() >= self.tree_max {
            let entries = std::mem::take(&mut self.tree).into_iter().collect();
            self.add_chunk(entries);
        }
    }

    pub(crate) fn remove(&mut self, at: &PackedPlace) -> Option<MemtableEntry> {
        self.settle();
        let removed = match self.tree.remove(at) {
            Some(slot) => Some(slot),
            None => self.chunks.iter_mut().find_map(|chunk| chunk.remove(at)),
        };
        self.len -= usize::from(removed.is_some());
        removed
    }

    /// The first entry from here on.
    pub(crate) fn first(&self, from: Bound<PackedPlace>) -> Option<(PackedPlace, MemtableEntry)> {
        self.check_settled();
        let tree = self.tree.range((from, Bound::Unbounded)).next().map(|(at, slot)| (*at, *slot));
        let chunks = self.chunks.iter().filter_map(|chunk| chunk.first(from));
        tree.into_iter().chain(chunks).min_by_key(|(at, _)| *at)
    }

    /// The last entry from `first` on that is before `before`.
    pub(crate) fn last(&self, first: PackedPlace, before: PackedPlace) -> Option<PackedPlace> {
        self.check_settled();
        if first >= before {
            return None;
        }
        let tree = self.tree.range(first..before).next_back().map(|(at, _)| *at);
        let chunks = self.chunks.iter().filter_map(|chunk| chunk.last(first, before));
        tree.into_iter().chain(chunks).max()
    }

    /// All entries within these bounds, in no order.
    pub(crate) fn within(
        &self,
        from: PackedPlace,
        to: PackedPlace,
    ) -> impl Iterator<Item = (PackedPlace, MemtableEntry)> + '_ {
        self.check_settled();
        let tree = self.tree.range(from..=to).map(|(at, slot)| (*at, *slot));
        let chunks = self.chunks.iter().flat_map(move |chunk| {
            let start = chunk.entries.partition_point(|entry| entry.0 < from);
            chunk.walk(start).take_while(move |(at, _)| *at <= to)
        });
        tree.chain(chunks)
    }

    /// Removes all entries within these bounds, at a cost of a few nanoseconds each.
    pub(crate) fn remove_within(&mut self, from: PackedPlace, to: PackedPlace) {
        self.settle();
        let is_outside = |at: &PackedPlace| *at < from || *at > to;
        self.tree.retain(|at, _| is_outside(at));
        for chunk in &mut self.chunks {
            chunk.retain(is_outside);
        }
        self.chunks.retain(|chunk| !chunk.entries.is_empty());
        self.chunk_slots = self.chunks.iter().map(|chunk| chunk.entries.len()).sum();
        self.len = self.tree.len() + self.chunks.iter().map(Chunk::alive_count).sum::<usize>();
    }

    /// All entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PackedPlace, MemtableEntry)> + '_ {
        self.check_settled();
        let tree = self.tree.iter().map(|(at, slot)| (*at, *slot));
        let mut sources: Vec<SortedSource<'_>> = vec![Box::new(tree)];
        for chunk in &self.chunks {
            sources.push(Box::new(chunk.walk(0)));
        }
        let mut heads = BinaryHeap::with_capacity(sources.len());
        for (index, source) in sources.iter_mut().enumerate() {
            heads.extend(source.next().map(|(at, slot)| Reverse(SourceHead { at, index, slot })));
        }
        std::iter::from_fn(move || {
            let mut first = heads.peek_mut()?;
            let Reverse(SourceHead { at, index, slot }) = *first;
            match sources[index].next() {
                Some((at, slot)) => *first = Reverse(SourceHead { at, index, slot }),
                None => drop(PeekMut::pop(first)),
            }
            Some((at, slot))
        })
    }

    /// Sorted entries become a chunk; chunks of about its size become one with it.
    fn add_chunk(&mut self, mut entries: EntryList) {
        let merged_max = MERGED_MAX * self.tree_max;
        while let Some(last) = self.chunks.last()
            && last.entries.len() <= entries.len()
            && last.entries.len() + entries.len() <= merged_max
        {
            self.chunk_slots -= last.entries.len();
            entries = merge(last, entries);
            self.chunks.pop();
        }
        self.chunk_slots += entries.len();
        self.chunks.push(Chunk { entries, alive: Vec::new() });
    }
}

fn sort_entries(entries: &mut [(PackedPlace, MemtableEntry)]) {
    let Some(lane) = entries.first().map(|(at, _)| at.lane()) else { return };
    let is_one_lane = entries.iter().all(|(at, _)| at.lane() == lane);
    let digit = |(at, _): &(PackedPlace, MemtableEntry)| {
        if is_one_lane { at.within_lane() } else { at.lane() }
    };
    sort(entries, digit, |entry| entry.0);
}

fn merge(older: &Chunk, newer: EntryList) -> EntryList {
    let mut merged = Vec::with_capacity(older.entries.len() + newer.len());
    let mut older = older.walk(0).peekable();
    for entry in newer {
        while let Some(before) = older.next_if(|before| before.0 < entry.0) {
            merged.push(before);
        }
        merged.push(entry);
    }
    merged.extend(older);
    merged
}

impl Chunk {
    /// Where a place is, if its entry is alive.
    fn position(&self, at: &PackedPlace) -> Option<usize> {
        let (first, last) = (self.entries.first()?, self.entries.last()?);
        // Where jobs come due as they were put, chunks hardly overlap: two comparisons rule out
        // most of them.
        if *at < first.0 || *at > last.0 {
            return None;
        }
        let position = self.entries.binary_search_by(|entry| entry.0.cmp(at)).ok()?;
        (self.alive_from(position) == position).then_some(position)
    }

    fn get(&self, at: &PackedPlace) -> Option<&MemtableEntry> {
        self.position(at).map(|position| &self.entries[position].1)
    }

    fn remove(&mut self, at: &PackedPlace) -> Option<MemtableEntry> {
        let position = self.position(at)?;
        if self.alive.is_empty() {
            self.alive = (0..=self.entries.len() as u32).map(AtomicU32::new).collect();
        }
        self.alive[position].store(position as u32 + 1, Relaxed);
        Some(self.entries[position].1)
    }

    /// Keeps only entries that are alive and at these places; a chunk without any other stays as
    /// it is.
    fn retain(&mut self, keep: impl Fn(&PackedPlace) -> bool) {
        if self.entries.iter().all(|(at, _)| keep(at)) {
            return;
        }
        let kept = self.walk(0).filter(|(at, _)| keep(at)).collect();
        *self = Chunk { entries: kept, alive: Vec::new() };
    }

    fn alive_count(&self) -> usize {
        if self.alive.is_empty() { self.entries.len() } else { self.walk(0).count() }
    }

    fn first(&self, from: Bound<PackedPlace>) -> Option<(PackedPlace, MemtableEntry)> {
        let is_before = |at: &PackedPlace| match from {
            Bound::Included(from) => *at < from,
            Bound::Excluded(from) => *at <= from,
            Bound::Unbounded => false,
        };
        let (first, last) = (self.entries.first()?, self.entries.last()?);
        if is_before(&last.0) {
            return None;
        }
        let start = if is_before(&first.0) {
            self.entries.partition_point(|entry| is_before(&entry.0))
        } else {
            0
        };
        self.entries.get(self.alive_from(start)).copied()
    }

    fn last(&self, first: PackedPlace, before: PackedPlace) -> Option<PackedPlace> {
        let end = self.entries.partition_point(|entry| entry.0 < before);
        let start = self.entries.get(..end)?.partition_point(|entry| entry.0 < first);
        let is_alive = |position: &usize| match self.alive.get(*position) {
            Some(next) => next.load(Relaxed) as usize == *position,
            None => true,
        };
        let last = (start..end).rev().find(is_alive)?;
        self.entries.get(last).map(|entry| entry.0)
    }

    /// Everything alive from a position on.
    fn walk(&self, from: usize) -> impl Iterator<Item = (PackedPlace, MemtableEntry)> + '_ {
        let mut position = from;
        std::iter::from_fn(move || {
            position = self.alive_from(position) + 1;
            self.entries.get(position - 1).copied()
        })
    }

    /// The first position from here on that is alive; the chunk's length if there is none.
    fn alive_from(&self, from: usize) -> usize {
        let next = |position: usize| match self.alive.get(position) {
            Some(next) => next.load(Relaxed) as usize,
            None => position.min(self.entries.len()),
        };
        let mut alive = next(from);
        while next(alive) != alive {
            alive = next(alive);
        }
        // The next reader goes straight there.
        let mut position = from;
        while position < alive {
            let after = next(position);
            self.alive[position].store(alive as u32, Relaxed);
            position = after;
        }
        alive
    }
}

#[cfg(test)]
mod tests {
    use dormouse_core::job::JobId;
    use dormouse_core::place::Class;
    use dormouse_core::topic::TopicNo;

    use super::*;

    fn at(due_at: u64) -> PackedPlace {
        PackedPlace::new(TopicNo(1), Class::FIRST, due_at, JobId(due_at))
    }

    /// Random inserts, removes and reads against a plain map.
    #[test]
    fn entries_are_as_a_plain_map_has_them() {
        for seed in 1..200_u64 {
            let mut state = seed;
            let mut random = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                (state >> 33) % below
            };
            let mut entries = Entries::new(1 + seed as usize % 7);
            let mut plain = BTreeMap::new();
            for step in 0..300 {
                let place = at(random(120));
                match (plain.remove(&place), random(3)) {
                    (None, 1..) => {
                        let slot = MemtableEntry { put_batch: step, ..MemtableEntry::TOMBSTONE };
                        entries.insert(place, slot);
                        plain.insert(place, step);
                    }
                    (None, _) => assert!(entries.remove(&place).is_none(), "seed {seed}"),
                    (Some(put_batch), 1..) => {
                        let removed = entries.remove(&place).map(|slot| slot.put_batch);
                        assert_eq!(removed, Some(put_batch), "seed {seed} step {step}");
                    }
                    (Some(_), _) => {
                        entries.get_mut(&place).unwrap().put_batch = step;
                        plain.insert(place, step);
                    }
                }
                if random(3) > 0 {
                    continue;
                }
                entries.settle();
                let (low, high) = (at(random(60)), at(60 + random(60)));
                let found =
                    entries.first(Bound::Excluded(low)).map(|(at, slot)| (at, slot.put_batch));
                let wanted = plain.range((Bound::Excluded(low), Bound::Unbounded)).next();
                assert_eq!(
                    found,
                    wanted.map(|(at, put_batch)| (*at, *put_batch)),
                    "seed {seed} step {step}"
                );
                let last = entries.last(low, high);
                assert_eq!(last, plain.range(low..high).next_back().map(|entry| *entry.0));
                let mut within: Vec<_> = entries.within(low, high).map(|entry| entry.0).collect();
                within.sort_unstable();
                assert!(within.iter().eq(plain.range(low..=high).map(|entry| entry.0)));
            }
            let (low, high) = (at(random(60)), at(60 + random(60)));
            entries.remove_within(low, high);
            plain.retain(|at, _| *at < low || *at > high);
            assert_eq!(entries.len(), plain.len());
            entries.settle();
            let all: Vec<_> = entries.iter().map(|(at, slot)| (at, slot.put_batch)).collect();
            assert!(all.into_iter().eq(plain), "seed {seed}");
        }
    }
}
