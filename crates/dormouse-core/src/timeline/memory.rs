//! The timeline in memory: maps, and nothing clever, because every other timeline is compared
//! with it.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use super::{BatchNo, Head, Next, Resting, Room, Stretch, Timeline};
use crate::Map;
use crate::error::Fatal;
use crate::job::{Job, JobId};
use crate::place::{Class, Place};
use crate::time::{Clock, Now};
use crate::topic::TopicNo;

/// Within a lane jobs lie by due time, then id.
type Spot = (u64, JobId);

/// One topic's jobs of one class.
#[derive(Clone, Debug, Default)]
struct Lane {
    jobs: BTreeMap<Spot, (Job, BatchNo)>,
    /// How many jobs have `due_at <= counted_until`. Asking for another instant moves it over the
    /// jobs in between, so as time goes by each job is passed once.
    counted: u64,
    counted_until: u64,
}

impl Lane {
    fn insert(&mut self, spot: Spot, job: Job, put_batch: BatchNo) {
        if self.jobs.insert(spot, (job, put_batch)).is_none() && spot.0 <= self.counted_until {
            self.counted += 1;
        }
    }

    fn remove(&mut self, spot: Spot) -> Option<(Job, BatchNo)> {
        let found = self.jobs.remove(&spot)?;
        if spot.0 <= self.counted_until {
            self.counted -= 1;
        }
        Some(found)
    }

    fn count(&mut self, until: u64) -> u64 {
        let past = |due_at: u64| Bound::Excluded((due_at, JobId(u64::MAX)));
        let (low, high) = (until.min(self.counted_until), until.max(self.counted_until));
        let between =
            if low == high { 0 } else { self.jobs.range((past(low), past(high))).count() };
        if until > self.counted_until {
            self.counted += between as u64;
        } else {
            self.counted -= between as u64;
        }
        self.counted_until = until;
        self.counted
    }
}

/// Waiting jobs, dead jobs and key holds in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryTimeline {
    /// A lane that is empty is not here.
    lanes: BTreeMap<(TopicNo, Class), Lane>,
    places: Map<JobId, Place>,
    /// Where the job or hold rests that has the key.
    keys: Map<(TopicNo, Bytes), Place>,
    synced: BatchNo,
}

impl MemoryTimeline {
    /// With nothing in it.
    pub fn new() -> MemoryTimeline {
        MemoryTimeline::default()
    }

    /// Puts up to this batch are durable: their jobs may be handed out.
    pub fn set_synced(&mut self, batch: BatchNo) {
        self.synced = batch;
    }

    /// Everything that rests here, holds too, in the order of places.
    pub fn iter(&self) -> impl Iterator<Item = (Place, &Job)> {
        self.lanes.iter().flat_map(|(&(topic, class), lane)| {
            lane.jobs
                .iter()
                .map(move |(&(due_at, id), (job, _))| (Place { topic, class, due_at, id }, job))
        })
    }

    fn remove(&mut self, place: Place) -> Option<(Job, BatchNo)> {
        let lane = self.lanes.get_mut(&(place.topic, place.class))?;
        let (job, put_batch) = lane.remove((place.due_at, place.id))?;
        if lane.jobs.is_empty() {
            self.lanes.remove(&(place.topic, place.class));
        }
        self.forget(place, &job);
        Some((job, put_batch))
    }

    /// Takes a job that has left its lane out of the look-up maps.
    fn forget(&mut self, place: Place, job: &Job) {
        if place.class != Class::HOLD {
            self.places.remove(&place.id);
        }
        if let Some(key) = job.key() {
            let key = (place.topic, key.clone());
            if self.keys.get(&key) == Some(&place) {
                self.keys.remove(&key);
            }
        }
    }

    fn at(&self, place: Place) -> Option<Resting> {
        let lane = self.lanes.get(&(place.topic, place.class))?;
        let (job, put_batch) = lane.jobs.get(&(place.due_at, place.id))?;
        Some(Resting { place, job: job.clone(), put_batch: *put_batch })
    }

    fn head(&self, topic: TopicNo, class: Class) -> Option<Place> {
        let (&(due_at, id), _) = self.lanes.get(&(topic, class))?.jobs.first_key_value()?;
        Some(Place { topic, class, due_at, id })
    }

    fn waiting_lanes(&self, topic: TopicNo, from: Class) -> impl Iterator<Item = (Class, &Lane)> {
        let range = (topic, from.min(Class::DEAD))..(topic, Class::DEAD);
        self.lanes.range(range).map(|(&(_, class), lane)| (class, lane))
    }
}

impl Timeline for MemoryTimeline {
    fn arrive(&mut self, place: Place, job: &Job, put_batch: BatchNo) {
        if place.class != Class::HOLD {
            self.places.insert(place.id, place);
        }
        if let Some(key) = job.key() {
            self.keys.insert((place.topic, key.clone()), place);
        }
        let lane = self.lanes.entry((place.topic, place.class)).or_default();
        lane.insert((place.due_at, place.id), job.clone(), put_batch);
    }

    fn depart(&mut self, place: Place) {
        self.remove(place);
    }

    fn depart_replayed(&mut self, place: Place) -> Job {
        let found = self.remove(place);
        found.map_or_else(|| Job { id: place.id, ..Job::default() }, |(job, _)| job)
    }

    fn next(&mut self, topic: TopicNo, now: Now) -> Result<Next, Fatal> {
        let (mut best, mut earliest_ms, mut blocked) = (None::<Place>, None::<u64>, false);
        for (class, lane) in self.waiting_lanes(topic, Class::FIRST) {
            if best.is_some_and(|best| best.class.priority() < class.priority()) {
                break;
            }
            let Some((&(due_at, id), (_, put_batch))) = lane.jobs.first_key_value() else {
                continue;
            };
            let place = Place { topic, class, due_at, id };
            if !place.is_due(now) {
                let until_ms = now.until_ms(class.clock(), due_at);
                earliest_ms = Some(earliest_ms.map_or(until_ms, |ms| ms.min(until_ms)));
            } else if *put_batch > self.synced {
                // Behind an unsynced head nothing of its lane is given: order is kept.
                blocked = true;
            } else if best.is_none_or(|best| place.given_before(&best, now)) {
                best = Some(place);
            }
        }
        Ok(match (best, earliest_ms) {
            (Some(place), _) => Next::Due(place),
            (None, _) if blocked => Next::Blocked,
            (None, Some(ms)) => Next::In(ms.max(1)),
            (None, None) => Next::Empty,
        })
    }

    fn oldest(&mut self, topic: TopicNo, class: Class) -> Result<Head, Fatal> {
        Ok(self.head(topic, class).map_or(Head::Empty, Head::At))
    }

    fn take(&mut self, place: Place) -> Result<Resting, Fatal> {
        let taken = self.remove(place);
        let (job, put_batch) = taken.ok_or_else(|| {
            Fatal::new(format!("job {} is not where it was seen to rest", place.id))
        })?;
        Ok(Resting { place, job, put_batch })
    }

    fn find(&mut self, id: JobId) -> Result<Option<Resting>, Fatal> {
        Ok(self.places.get(&id).and_then(|&place| self.at(place)))
    }

    fn place_of(&mut self, id: JobId) -> Result<Option<Place>, Fatal> {
        Ok(self.places.get(&id).copied())
    }

    fn find_key(&mut self, topic: TopicNo, key: &[u8]) -> Result<Option<Resting>, Fatal> {
        let place = self.keys.get(&(topic, Bytes::copy_from_slice(key))).copied();
        Ok(place.and_then(|place| self.at(place)))
    }

    fn purge(&mut self, topic: TopicNo, _jobs: u64) {
        let lanes = (topic, Class::waiting(0, Clock::Steady))..=(topic, Class::LAST);
        let keys: Vec<_> = self.lanes.range(lanes).map(|(&key, _)| key).collect();
        for key in keys {
            let lane = self.lanes.remove(&key).unwrap_or_default();
            for ((due_at, id), (job, _)) in lane.jobs {
                self.forget(Place { topic, class: key.1, due_at, id }, &job);
            }
        }
    }

    fn classes(&mut self, topic: TopicNo, from: Class, max: usize) -> Result<Vec<Class>, Fatal> {
        let parked = (topic, from.max(Class::PARKED))..=(topic, Class::LAST);
        let parked = self.lanes.range(parked).map(|(&(_, class), _)| class);
        let offered = self.waiting_lanes(topic, from).map(|(class, _)| class);
        Ok(offered.chain(parked).take(max).collect())
    }

    fn count(&mut self, topic: TopicNo, class: Class, until: u64) -> Result<u64, Fatal> {
        Ok(self.lanes.get_mut(&(topic, class)).map_or(0, |lane| lane.count(until)))
    }

    fn count_steps(
        &mut self,
        topic: TopicNo,
        class: Class,
        from: u64,
        ends: &[u64],
    ) -> Result<Vec<u64>, Fatal> {
        let lane = self.lanes.get(&(topic, class));
        let mut start = from;
        let count = |end: &u64| {
            let step = (start, JobId(0))..((*end).max(start), JobId(0));
            start = start.max(*end);
            lane.map_or(0, |lane| lane.jobs.range(step).count() as u64)
        };
        Ok(ends.iter().map(count).collect())
    }

    fn page(
        &mut self,
        topic: TopicNo,
        class: Class,
        from: (u64, JobId),
        mut room: Room,
    ) -> Result<Stretch, Fatal> {
        let mut jobs = Vec::new();
        let Some(lane) = self.lanes.get(&(topic, class)) else { return Ok(Stretch::default()) };
        for (&(due_at, id), (job, put_batch)) in lane.jobs.range(from..) {
            if !room.is_left() {
                break;
            }
            room.take(job);
            let place = Place { topic, class, due_at, id };
            jobs.push(Resting { place, job: job.clone(), put_batch: *put_batch });
        }
        Ok(Stretch { jobs, next: None })
    }

    fn page_back(
        &mut self,
        topic: TopicNo,
        class: Class,
        before: (u64, JobId),
        mut room: Room,
    ) -> Result<Stretch, Fatal> {
        let mut jobs = Vec::new();
        let Some(lane) = self.lanes.get(&(topic, class)) else { return Ok(Stretch::default()) };
        for (&(due_at, id), (job, put_batch)) in lane.jobs.range(..before).rev() {
            if !room.is_left() {
                break;
            }
            room.take(job);
            let place = Place { topic, class, due_at, id };
            jobs.push(Resting { place, job: job.clone(), put_batch: *put_batch });
        }
        Ok(Stretch { jobs, next: None })
    }
}
