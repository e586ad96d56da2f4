//! The memtable: what came to rest, or left, since the last flush.
//!
//! Every entry carries its net weight: +1 per arrival at its place, -1 per departure from it. An
//! entry without a job at weight 0 disappears; at -1 it is a tombstone for a job in an older
//! source. No look-up decides it, so replay, which reads no run, comes to the same table.

mod arena;
mod ids;

use std::collections::BTreeMap;
use std::ops::Bound;

use dormouse_core::Map;
use dormouse_core::job::{Job, JobId};
use dormouse_core::place::{Class, Place};
use dormouse_core::timeline::Born;
use dormouse_core::topic::TopicNo;

use crate::codec::{decode_payload, encode_payload, payload_key};
use crate::run::key_hash;
use arena::{Arena, Span};
use ids::Ids;

/// A position within a lane.
pub(crate) type Key = (u64, JobId);

/// What a memtable knows of one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) weight: i8,
    /// The encoded job; `None` = a tombstone.
    job: Option<Span>,
    /// The batch that put the job.
    pub(crate) born: Born,
}

impl Slot {
    pub(crate) fn is_job(&self) -> bool {
        self.job.is_some()
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

/// Entries by place.
#[derive(Debug, Default)]
pub(crate) struct Memtable {
    entries: BTreeMap<Place, Slot>,
    lanes: BTreeMap<(TopicNo, Class), LaneCount>,
    ids: Ids,
    keys: Map<u64, Vec<(JobId, bool)>>,
    arena: Arena,
}

impl Memtable {
    /// A job comes to rest.
    pub(crate) fn arrive(&mut self, place: Place, job: &Job, born: Born) {
        let about = job.content.bytes() as usize + 256;
        let span = self.arena.store(about, |out| encode_payload(job, out));
        if let Some(key) = job.key() {
            let hash = key_hash(place.topic, key);
            self.keys.entry(hash).or_default().push((job.id, place.class == Class::HOLD));
        }
        let mut entered = false;
        let slot = self.entries.entry(place).or_insert_with(|| {
            entered = true;
            Slot { weight: 0, job: None, born: 0 }
        });
        debug_assert!(slot.job.is_none(), "two jobs at {place:?}");
        *slot = Slot { weight: slot.weight + 1, job: Some(span), born };
        self.count(place, 1, isize::from(entered));
        if entered {
            self.ids.insert(place);
        }
    }

    /// A job leaves its place otherwise than at the head of its lane.
    pub(crate) fn depart(&mut self, place: Place) {
        self.forget_key(place);
        match self.entries.get_mut(&place) {
            Some(slot) if slot.weight == 1 => self.drop_entry(place),
            Some(slot) => {
                *slot = Slot { weight: slot.weight - 1, job: None, born: 0 };
                self.count(place, -1, 0);
            }
            None => {
                self.entries.insert(place, Slot { weight: -1, job: None, born: 0 });
                self.ids.insert(place);
                self.count(place, -1, 1);
            }
        }
    }

    /// The entry at the head of a lane was consumed together with its equals in older sources.
    pub(crate) fn pop(&mut self, place: Place) {
        self.forget_key(place);
        self.drop_entry(place);
    }

    fn drop_entry(&mut self, place: Place) {
        if let Some(slot) = self.entries.remove(&place) {
            self.ids.remove(place);
            self.count(place, -i64::from(slot.weight), -1);
        }
    }

    /// A job's key is no longer to be found through this entry.
    fn forget_key(&mut self, place: Place) {
        let hash = self.payload(place).and_then(payload_key).map(|key| key_hash(place.topic, key));
        let Some(hash) = hash else { return };
        if let Some(ids) = self.keys.get_mut(&hash) {
            let gone = (place.id, place.class == Class::HOLD);
            ids.retain(|other| *other != gone);
            if ids.is_empty() {
                self.keys.remove(&hash);
            }
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
        let places: Vec<Place> = self.of_topic(topic).map(|(place, _)| *place).collect();
        for place in places {
            self.pop(place);
        }
    }

    fn of_topic(&self, topic: TopicNo) -> impl Iterator<Item = (&Place, &Slot)> {
        let first =
            start_of(topic, Class::waiting(0, dormouse_core::time::Clock::Steady), (0, JobId(0)));
        self.entries.range(first..).take_while(move |(place, _)| place.topic == topic)
    }

    /// The first entry of a lane at or after `from`.
    pub(crate) fn first(&self, topic: TopicNo, class: Class, from: Key) -> Option<(Place, Slot)> {
        let mut rest = self.entries.range(start_of(topic, class, from)..);
        let (place, slot) = rest.next()?;
        (place.topic == topic && place.class == class).then_some((*place, *slot))
    }

    /// The first entry of a lane after `key`.
    pub(crate) fn after(&self, topic: TopicNo, class: Class, key: Key) -> Option<(Place, Slot)> {
        let from = (Bound::Excluded(start_of(topic, class, key)), Bound::Unbounded);
        let (place, slot) = self.entries.range(from).next()?;
        (place.topic == topic && place.class == class).then_some((*place, *slot))
    }

    /// The entry at a place.
    pub(crate) fn get(&self, place: Place) -> Option<Slot> {
        self.entries.get(&place).copied()
    }

    /// The encoded job at a place.
    pub(crate) fn payload(&self, place: Place) -> Option<&[u8]> {
        self.entries.get(&place)?.job.map(|span| self.arena.get(span))
    }

    /// The job at a place.
    pub(crate) fn job(&self, place: Place) -> Option<Job> {
        // What this table encoded itself it can decode.
        self.payload(place).and_then(|payload| decode_payload(place.id, payload))
    }

    /// Puts another content under the job at a place; nothing else changes.
    pub(crate) fn rewrite(&mut self, place: Place, job: &Job) {
        let about = job.content.bytes() as usize + 256;
        let span = self.arena.store(about, |out| encode_payload(job, out));
        if let Some(slot) = self.entries.get_mut(&place) {
            slot.job = Some(span);
        }
        if let Some(key) = job.key() {
            let ids = self.keys.entry(key_hash(place.topic, key)).or_default();
            ids.push((place.id, place.class == Class::HOLD));
        }
    }

    /// All places that mention an id.
    pub(crate) fn places(&self, id: JobId) -> impl Iterator<Item = Place> + '_ {
        self.ids.places(id)
    }

    /// Ids of jobs and holds whose key has this hash.
    pub(crate) fn by_key(&self, hash: u64) -> &[(JobId, bool)] {
        self.keys.get(&hash).map_or(&[], Vec::as_slice)
    }

    /// Classes of a topic that have entries here, ascending.
    pub(crate) fn classes(&self, topic: TopicNo) -> impl Iterator<Item = Class> + '_ {
        let first = (topic, Class::waiting(0, dormouse_core::time::Clock::Steady));
        self.lanes
            .range(first..)
            .map(|(lane, _)| *lane)
            .take_while(move |lane| lane.0 == topic)
            .map(|lane| lane.1)
    }

    /// Topics that have entries of a class, ascending.
    pub(crate) fn topics_with(&self, class: Class) -> Vec<TopicNo> {
        self.lanes.keys().filter(|lane| lane.1 == class).map(|lane| lane.0).collect()
    }

    /// The weight of a lane's entries with `due_at <= until`.
    pub(crate) fn rank(&mut self, topic: TopicNo, class: Class, until: u64) -> i64 {
        let Some(lane) = self.lanes.get_mut(&(topic, class)) else { return 0 };
        let (low, high) = (lane.until.min(until), lane.until.max(until));
        let sign = if until >= lane.until { 1 } else { -1 };
        if low < high {
            let start = start_of(topic, class, (low + 1, JobId(0)));
            let end = start_of(topic, class, (high, JobId(u64::MAX)));
            let between: i64 =
                self.entries.range(start..=end).map(|(_, slot)| i64::from(slot.weight)).sum();
            lane.weight += sign * between;
            lane.until = until;
        }
        lane.weight
    }

    /// The weight of a lane's entries within two bounds, counted one by one.
    pub(crate) fn weigh(&self, topic: TopicNo, class: Class, from: Key, until: u64) -> i64 {
        let start = start_of(topic, class, from);
        let end = start_of(topic, class, (until, JobId(u64::MAX)));
        if start > end {
            return 0;
        }
        self.entries.range(start..=end).map(|(_, slot)| i64::from(slot.weight)).sum()
    }

    /// All entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Place, i32, Option<&[u8]>)> {
        self.entries.iter().map(|(place, slot)| {
            (place, i32::from(slot.weight), slot.job.map(|span| self.arena.get(span)))
        })
    }

    /// Entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        // An entry costs its node in the tree (about 75 bytes at the usual fill) and its id slot.
        self.arena.bytes() + self.entries.len() * 100
    }
}

fn start_of(topic: TopicNo, class: Class, key: Key) -> Place {
    Place { topic, class, due_at: key.0, id: key.1 }
}
