//! Finding a job by id or key: newest source first, the newest mention decides.

use dormouse_core::error::Fatal;
use dormouse_core::job::JobId;
use dormouse_core::place::{Class, Place};
use dormouse_core::timeline::Resting;
use dormouse_core::topic::TopicNo;

use super::sources::{OpenRun, Sources};
use super::stopped;
use crate::damage::Damage;
use crate::memtable::Memtable;
use crate::run::{BlockCache, Loc, Run, key_hash};

/// The mention of an id in one source.
enum Mention<S> {
    /// Nothing.
    None,
    /// It was here once: whatever older sources say is past.
    Past,
    /// It rests here.
    Rests(Place, S),
}

/// The source in which a job rests, and where it is in there.
enum Spot {
    Mem,
    Frozen(usize),
    Run(usize, Loc),
}

/// Where the job at a location of a run rests; `None` for a tombstone.
type PlaceIn = fn(&Run, &mut BlockCache, Loc) -> Result<Option<Place>, Damage>;

impl Sources {
    /// The resting job (or the hold) of an id.
    pub(crate) fn find(&mut self, id: JobId, hold: bool) -> Result<Option<Resting>, Fatal> {
        // The job is read next, so its block is read at once.
        let place_in: PlaceIn = |run, cache, loc| {
            let head = run.head(cache, loc)?;
            Ok(head.is_job.then_some(head.place))
        };
        let Some((place, spot)) = self.locate(id, hold, place_in)? else { return Ok(None) };
        let table = match spot {
            Spot::Mem => &self.mem,
            Spot::Frozen(index) => &self.frozen[index].table,
            Spot::Run(index, loc) => {
                let entry = self.runs[index].run.entry(&mut self.cache, loc).map_err(stopped)?;
                let Some(payload) = entry.payload else { return Ok(None) };
                let job = self.decode(&self.runs[index], id, &payload)?;
                return Ok(Some(Resting { place, job, put_batch: 0 }));
            }
        };
        let found = table.job(place).zip(table.get(place));
        Ok(found.map(|(job, entry)| Resting { place, job, put_batch: table.put_batch(&entry) }))
    }

    /// Where the job of an id rests; the job is not read.
    pub(crate) fn place_of(&mut self, id: JobId) -> Result<Option<Place>, Fatal> {
        Ok(self.locate(id, false, Run::place)?.map(|(place, _)| place))
    }

    fn locate(
        &mut self,
        id: JobId,
        hold: bool,
        place_in: PlaceIn,
    ) -> Result<Option<(Place, Spot)>, Fatal> {
        match self.find_in_mem(id, hold) {
            Mention::None => {}
            Mention::Past => return Ok(None),
            Mention::Rests(place, ()) => return Ok(Some((place, Spot::Mem))),
        }
        for index in (0..self.frozen.len()).rev() {
            match self.find_in_frozen(index, id, hold) {
                Mention::None => {}
                Mention::Past => return Ok(None),
                Mention::Rests(place, ()) => return Ok(Some((place, Spot::Frozen(index)))),
            }
        }
        for index in (0..self.runs.len()).rev() {
            match self.find_in_run(index, id, hold, place_in)? {
                Mention::None => {}
                Mention::Past => return Ok(None),
                Mention::Rests(place, loc) => return Ok(Some((place, Spot::Run(index, loc)))),
            }
        }
        Ok(None)
    }

    fn find_in_mem(&mut self, id: JobId, hold: bool) -> Mention<()> {
        let mut mention = Mention::None;
        // Bringing entries into order costs more than to see that none has this id.
        if self.mem.places(id).next().is_some() {
            self.mem.settle();
        }
        for place in self.mem.places(id).filter(|place| is_of(place, hold)) {
            mention = Mention::Past;
            if has_job(&self.mem, place) {
                return Mention::Rests(place, ());
            }
        }
        mention
    }

    fn find_in_frozen(&self, index: usize, id: JobId, hold: bool) -> Mention<()> {
        let frozen = &self.frozen[index];
        let mut mention = Mention::None;
        for place in frozen.table.places(id).filter(|place| is_of(place, hold)) {
            mention = Mention::Past;
            if self.frontiers.is_unread(&place, frozen.age) && has_job(&frozen.table, place) {
                return Mention::Rests(place, ());
            }
        }
        mention
    }

    fn find_in_run(
        &mut self,
        index: usize,
        id: JobId,
        hold: bool,
        place_in: PlaceIn,
    ) -> Result<Mention<Loc>, Fatal> {
        let open = &self.runs[index];
        let mut mention = Mention::None;
        for loc in open.run.by_id(id, hold).map_err(stopped)? {
            mention = Mention::Past;
            let place = place_in(&open.run, &mut self.cache, loc).map_err(stopped)?;
            if let Some(place) = place
                && self.frontiers.is_unread(&place, open.age())
            {
                return Ok(Mention::Rests(place, loc));
            }
        }
        Ok(mention)
    }

    /// The resting job, or else the hold, that has this key.
    ///
    /// An index names ids that had the key once; only a job that rests and still carries the key
    /// counts. At most one does, so the search may go on past stale names.
    pub(crate) fn find_key(
        &mut self,
        topic: TopicNo,
        key: &[u8],
    ) -> Result<Option<Resting>, Fatal> {
        let mut held = None;
        for (id, hold) in self.named(key_hash(topic, key))? {
            let Some(resting) = self.find(id, hold)? else { continue };
            let carries = resting.job.key().is_some_and(|other| other.as_ref() == key);
            if !carries || resting.place.topic != topic {
                continue;
            }
            if !hold {
                return Ok(Some(resting));
            }
            // Of several the one that lasts longest keeps the key.
            held = match held {
                Some(other) if later(&other, &resting) => Some(other),
                _ => Some(resting),
            };
        }
        Ok(held)
    }

    /// Ids that the sources' indexes have for a key, newest source first.
    fn named(&self, hash: u64) -> Result<Vec<(JobId, bool)>, Fatal> {
        let mut named = self.mem.by_key(hash);
        for frozen in self.frozen.iter().rev() {
            named.extend(frozen.table.by_key(hash));
        }
        if self.key_filters.exclude_all(hash) {
            return Ok(named);
        }
        let excluded = self.key_filters.exclude(hash);
        let asked = |open: &&OpenRun| !(excluded && open.is_covered());
        // The filters' lines are far apart in memory: fetched side by side they cost one wait.
        let touched = self.runs.iter().filter(asked);
        std::hint::black_box(touched.fold(0, |sum, open| sum ^ open.run.touch_key(hash)));
        let asked = self.runs.iter().rev().filter(asked);
        for open in asked.filter(|open| open.run.may_have_key(hash)) {
            named.extend(open.run.by_key(hash).map_err(stopped)?);
        }
        Ok(named)
    }
}

fn has_job(table: &Memtable, place: Place) -> bool {
    table.get(place).is_some_and(|entry| entry.is_job())
}

fn is_of(place: &Place, hold: bool) -> bool {
    (place.class == Class::HOLD) == hold
}

fn later(one: &Resting, other: &Resting) -> bool {
    one.place.due_at >= other.place.due_at
}
