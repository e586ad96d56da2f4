//! Which places of a memtable mention an id.
//!
//! New jobs get consecutive ids, so most of them are found by position in a plain vector; only
//! jobs older than the table need a map. A job born in this table has at most one entry here:
//! where it left nothing remains, because no older source knows it.

use dormouse_core::Map;
use dormouse_core::job::JobId;
use dormouse_core::place::{Class, Place};
use dormouse_core::topic::TopicNo;

#[derive(Clone, Copy, Debug)]
struct IdEntry {
    topic: TopicNo,
    class: Option<Class>,
    due_at: u64,
}

const VACANT: IdEntry = IdEntry { topic: TopicNo(0), class: None, due_at: 0 };

/// The places of each id.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// The first id that is found by position.
    base: u64,
    recent: Vec<IdEntry>,
    older: Map<JobId, Vec<Place>>,
}

/// Ids that may be missing in a row; real ones have no gaps.
const GAP_MAX: usize = 1 << 16;

impl Ids {
    /// No job at all has this id or a greater one yet.
    pub(crate) fn new(next_id: u64) -> Ids {
        Ids { base: next_id, ..Ids::default() }
    }

    /// Whether no entry of this table has mentioned the id, because the job is that new.
    pub(crate) fn is_new(&self, id: JobId) -> bool {
        id.0 >= self.base + self.recent.len() as u64
    }

    /// Notes that an entry of this id is at this place.
    pub(crate) fn insert(&mut self, place: Place) {
        let lite = IdEntry { topic: place.topic, class: Some(place.class), due_at: place.due_at };
        let index = place.id.0.wrapping_sub(self.base) as usize;
        if self.is_new(place.id) && index - self.recent.len() <= GAP_MAX {
            self.recent.resize(index, VACANT);
            self.recent.push(lite);
            return;
        }
        match self.recent.get_mut(index) {
            Some(slot) if slot.class.is_none() => *slot = lite,
            _ => self.older.entry(place.id).or_default().push(place),
        }
    }

    /// Notes that the entry at this place is gone.
    pub(crate) fn remove(&mut self, place: Place) {
        let index = place.id.0.wrapping_sub(self.base) as usize;
        if let Some(slot) = self.recent.get_mut(index)
            && slot.topic == place.topic
            && slot.class == Some(place.class)
            && slot.due_at == place.due_at
        {
            *slot = VACANT;
            return;
        }
        if let Some(places) = self.older.get_mut(&place.id) {
            places.retain(|other| *other != place);
            if places.is_empty() {
                self.older.remove(&place.id);
            }
        }
    }

    /// All places of this id.
    pub(crate) fn places(&self, id: JobId) -> impl Iterator<Item = Place> + '_ {
        let index = id.0.wrapping_sub(self.base) as usize;
        let recent = self.recent.get(index).and_then(|lite| {
            Some(Place { topic: lite.topic, class: lite.class?, due_at: lite.due_at, id })
        });
        recent.into_iter().chain(self.older.get(&id).into_iter().flatten().copied())
    }
}
