//! Reading a lane in order without consuming it.

use dormouse_core::error::Fatal;
use dormouse_core::job::JobId;
use dormouse_core::place::{Class, Place};
use dormouse_core::timeline::{Resting, Room, Stretch};
use dormouse_core::topic::TopicNo;

use super::effort::Effort;
use super::sources::Sources;
use super::stopped;
use crate::memtable::Key;
use crate::run::Loc;

/// Where the reading stands in each source.
struct Reading {
    mem: Option<Key>,
    frozen: Vec<Option<Key>>,
    runs: Vec<Option<(Key, Loc)>>,
}

/// The result of a reading.
pub(crate) struct LanePage {
    pub(crate) stretch: Stretch,
    /// Entries that were passed before the first job, and where that was.
    pub(crate) passed: usize,
    pub(crate) first: Key,
}

impl Sources {
    /// Jobs of a lane at or after `from`, in order, as many as there is room for.
    pub(crate) fn page(
        &mut self,
        topic: TopicNo,
        class: Class,
        from: Key,
        mut room: Room,
    ) -> Result<LanePage, Fatal> {
        self.mem.settle();
        let mut reading = self.start_reading(topic, class, from)?;
        let mut page = LanePage { stretch: Stretch::default(), passed: 0, first: from };
        let mut passed = 0;
        let mut effort = Effort::new();
        while room.is_left() {
            let runs = reading.runs.iter().flatten().map(|(key, _)| key);
            let keys = reading.mem.iter().chain(reading.frozen.iter().flatten()).chain(runs);
            let Some(key) = keys.min().copied() else {
                if page.stretch.jobs.is_empty() {
                    page.first = (u64::MAX, JobId(u64::MAX));
                }
                break;
            };
            if page.stretch.jobs.is_empty() {
                (page.passed, page.first) = (passed, key);
            }
            if !effort.is_left() {
                page.stretch.next = Some(key);
                break;
            }
            let place = Place { topic, class, due_at: key.0, id: key.1 };
            match self.read_past(&mut reading, place)? {
                (Some(resting), _) => {
                    room.take(&resting.job);
                    page.stretch.jobs.push(resting);
                }
                (None, bytes) => {
                    passed += 1;
                    effort.pass(bytes);
                }
            }
        }
        if page.stretch.jobs.is_empty() {
            page.passed = passed;
        }
        Ok(page)
    }

    fn start_reading(&mut self, topic: TopicNo, class: Class, from: Key) -> Result<Reading, Fatal> {
        let mem = self.mem.first(topic, class, from).map(|(place, _)| key_of(&place));
        let mut reading = Reading { mem, frozen: Vec::new(), runs: Vec::new() };
        for frozen in &self.frozen {
            let bound = self.frontiers.bound(topic, class, frozen.age);
            let first = bound.and_then(|bound| frozen.table.first(topic, class, bound.max(from)));
            reading.frozen.push(first.map(|(place, _)| key_of(&place)));
        }
        for open in &self.runs {
            let mut head = None;
            if let Some(bound) = self.frontiers.bound(topic, class, open.age()) {
                let start = bound.max(from);
                let loc = open.run.seek(&mut self.cache, topic, class, start).map_err(stopped)?;
                if let Some(loc) = loc {
                    let entry = open.run.entry(&mut self.cache, loc).map_err(stopped)?;
                    head = Some((key_of(&entry.place), loc));
                }
            }
            reading.runs.push(head);
        }
        Ok(reading)
    }

    /// Reads the first place over all sources and advances past it in each. Gives also the bytes
    /// that were read.
    fn read_past(
        &mut self,
        reading: &mut Reading,
        place: Place,
    ) -> Result<(Option<Resting>, usize), Fatal> {
        let mut bytes = 0;
        let key = key_of(&place);
        let (topic, class) = (place.topic, place.class);
        // Oldest first, so that the newest entry wins.
        let (mut job, mut payload_of) = (None, None);
        let mut put_batch = 0;
        for (index, head) in reading.runs.iter_mut().enumerate() {
            let Some((_, loc)) = head.filter(|(at, _)| *at == key) else { continue };
            let open = &self.runs[index];
            let entry = open.run.entry(&mut self.cache, loc).map_err(stopped)?;
            *head = match open.run.next(&mut self.cache, loc).map_err(stopped)? {
                Some(loc) => {
                    let entry = open.run.entry(&mut self.cache, loc).map_err(stopped)?;
                    Some((key_of(&entry.place), loc))
                }
                None => None,
            };
            payload_of = entry.payload.map(|payload| (index, payload));
            bytes += payload_of.as_ref().map_or(0, |(_, payload)| payload.len());
        }
        for (index, head) in reading.frozen.iter_mut().enumerate().filter(|(_, h)| **h == Some(key))
        {
            let table = &self.frozen[index].table;
            *head = table.after(topic, class, key).map(|(place, _)| key_of(&place));
            payload_of = None;
            job = table.job(place);
            put_batch = table.get(place).map_or(0, |slot| table.put_batch(&slot));
        }
        if reading.mem == Some(key) {
            reading.mem = self.mem.after(topic, class, key).map(|(place, _)| key_of(&place));
            payload_of = None;
            job = self.mem.job(place);
            put_batch = self.mem.get(place).map_or(0, |slot| self.mem.put_batch(&slot));
        }
        if let Some((index, payload)) = payload_of {
            job = Some(self.decode(&self.runs[index], place.id, &payload)?);
        }
        Ok((job.map(|job| Resting { place, job, put_batch }), bytes))
    }
}

fn key_of(place: &Place) -> Key {
    (place.due_at, JobId(place.id.0))
}
