//! Which places of a memtable mention an id.
//!
//! New jobs get consecutive ids, so most of them are found by position in a plain vector; only
//! jobs older than the table need a map. A job born in this table has at most one entry here:
//! where it left nothing remains, because no older source knows it.

use dormouse_core::Map;
use dormouse_core::job::JobId;
use dormouse_core::place::{Class, Place};
use dormouse_core::topic::TopicNo;

/// A place without its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdEntry {
    topic: TopicNo,
    class: Option<Class>,
    due_at: u64,
}

const VACANT: IdEntry = IdEntry { topic: TopicNo(0), class: None, due_at: 0 };

impl IdEntry {
    fn of(place: Place) -> IdEntry {
        IdEntry { topic: place.topic, class: Some(place.class), due_at: place.due_at }
    }

    fn place(self, id: JobId) -> Option<Place> {
        Some(Place { topic: self.topic, class: self.class?, due_at: self.due_at, id })
    }
}

/// The places of each id.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// The first id that is found by position.
    base: u64,
    recent: Vec<IdEntry>,
    /// One place of each job that is older than the table: a cancelled one has no other.
    older: Map<JobId, IdEntry>,
    /// Its other places, where a job left one and came to another.
    others: Map<JobId, Vec<IdEntry>>,
}

/// Ids that may be missing in a row; real ones have no gaps.
const GAP_MAX: usize = 1 << 16;
/// Bytes of an entry in `recent`, and in the map of older ids at its usual fill.
const RECENT_BYTES: usize = size_of::<IdEntry>();
const OLDER_BYTES: usize = 72;

impl Ids {
    /// No job at all has this id or a greater one yet.
    pub(crate) fn new(next_id: u64) -> Ids {
        Ids { base: next_id, ..Ids::default() }
    }

    /// Whether no entry of this table has mentioned the id, because the job is that new.
    pub(crate) fn is_new(&self, id: JobId) -> bool {
        // The entry of a deadline comes and goes with its job, under one number.
        id.job_of_deadline().is_none() && id.0 >= self.base + self.recent.len() as u64
    }

    /// Makes room for about as many ids as another table has, in this buffer.
    pub(super) fn reserve_like(&mut self, other: &Ids, buffer: Vec<IdEntry>) {
        self.recent = buffer;
        self.recent.reserve(other.recent.len());
        self.older.reserve(other.older.len());
    }

    /// Takes the largest buffer; nothing is here any more.
    pub(super) fn take_buffer(&mut self) -> Vec<IdEntry> {
        std::mem::take(&mut self.recent)
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.recent.len() * RECENT_BYTES + (self.older.len() + self.others.len()) * OLDER_BYTES
    }

    /// Notes that an entry of this id is at this place.
    pub(crate) fn insert(&mut self, place: Place) {
        let entry = IdEntry::of(place);
        let index = place.id.0.wrapping_sub(self.base) as usize;
        if self.is_new(place.id) && index - self.recent.len() <= GAP_MAX {
            self.recent.resize(index, VACANT);
            self.recent.push(entry);
            return;
        }
        match self.recent.get_mut(index) {
            Some(slot) if slot.class.is_none() => *slot = entry,
            _ => {
                if let Some(before) = self.older.insert(place.id, entry) {
                    self.others.entry(place.id).or_default().push(before);
                }
            }
        }
    }

    /// Notes that the entry at this place is gone.
    pub(crate) fn remove(&mut self, place: Place) {
        let gone = IdEntry::of(place);
        let index = place.id.0.wrapping_sub(self.base) as usize;
        if let Some(slot) = self.recent.get_mut(index)
            && *slot == gone
        {
            *slot = VACANT;
            return;
        }
        let is_first = self.older.get(&place.id) == Some(&gone);
        let mut next = None;
        if let Some(others) = self.others.get_mut(&place.id) {
            if is_first {
                next = others.pop();
            } else {
                others.retain(|other| *other != gone);
            }
            if others.is_empty() {
                self.others.remove(&place.id);
            }
        }
        match next {
            Some(next) => drop(self.older.insert(place.id, next)),
            None if is_first => drop(self.older.remove(&place.id)),
            None => {}
        }
    }

    /// Notes that all entries of a topic are gone.
    pub(crate) fn remove_topic(&mut self, topic: TopicNo) {
        for slot in self.recent.iter_mut().filter(|slot| slot.topic == topic) {
            *slot = VACANT;
        }
        // A job stays in its topic, so all its places go with the first.
        self.older.retain(|_, entry| entry.topic != topic);
        self.others.retain(|_, entries| entries.iter().all(|entry| entry.topic != topic));
    }

    /// Whether an entry of its id is at this place.
    pub(crate) fn mentions(&self, place: Place) -> bool {
        self.places(place.id).any(|other| other == place)
    }

    /// All places of this id.
    pub(crate) fn places(&self, id: JobId) -> impl Iterator<Item = Place> + '_ {
        let index = id.0.wrapping_sub(self.base) as usize;
        let recent = self.recent.get(index);
        let others = self.others.get(&id).into_iter().flatten();
        let entries = recent.into_iter().chain(self.older.get(&id)).chain(others);
        entries.filter_map(move |entry| entry.place(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(id: u64, topic: u32, due_at: u64) -> Place {
        Place { topic: TopicNo(topic), class: Class::FIRST, due_at, id: JobId(id) }
    }

    fn places(ids: &Ids, id: u64) -> Vec<u64> {
        let mut found: Vec<u64> = ids.places(JobId(id)).map(|place| place.due_at).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn an_older_job_may_have_several_places() {
        for gone in 1..=3 {
            let mut ids = Ids::new(100);
            (1..=3).for_each(|due_at| ids.insert(place(7, 1, due_at)));
            assert_eq!(places(&ids, 7), [1, 2, 3]);
            ids.remove(place(7, 1, gone));
            let left: Vec<u64> = (1..=3).filter(|due_at| *due_at != gone).collect();
            assert_eq!(places(&ids, 7), left);
            ids.remove(place(7, 1, gone));
            assert_eq!(places(&ids, 7), left, "a place that is gone is not removed again");
            left.iter().for_each(|due_at| ids.remove(place(7, 1, *due_at)));
            assert_eq!(places(&ids, 7), []);
            assert_eq!(ids.bytes(), 0);
        }
    }

    #[test]
    fn a_purged_topic_leaves_the_others() {
        let mut ids = Ids::new(100);
        for (id, topic) in [(1, 1), (2, 2), (100, 1), (101, 2)] {
            ids.insert(place(id, topic, 5));
            ids.insert(place(id, topic, 6));
        }
        ids.remove_topic(TopicNo(1));
        assert_eq!([1, 100].map(|id| places(&ids, id)), [vec![], vec![]]);
        assert_eq!([2, 101].map(|id| places(&ids, id)), [[5, 6], [5, 6]]);
    }
}
