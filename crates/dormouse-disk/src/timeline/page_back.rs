//! Reading a lane backwards without consuming it.

use dormouse_core::error::Fatal;
use dormouse_core::place::{Class, Place};
use dormouse_core::timeline::{Resting, Room, Stretch};
use dormouse_core::topic::TopicNo;

use super::effort::Effort;
use super::sources::Sources;
use super::stopped;
use crate::memtable::Key;
use crate::run::Loc;

/// The last unread entry of the lane in each source, before the position that was reached.
struct Tails {
    mem: Option<Key>,
    frozen: Vec<Option<Key>>,
    runs: Vec<Option<(Key, Loc)>>,
}

impl Tails {
    /// The last entry of all.
    fn last(&self) -> Option<Key> {
        let runs = self.runs.iter().flatten().map(|(key, _)| key);
        self.mem.iter().chain(self.frozen.iter().flatten()).chain(runs).max().copied()
    }
}

impl Sources {
    /// Jobs of a lane before a position, the last one first, as many as there is room for.
    pub(crate) fn page_back(
        &mut self,
        topic: TopicNo,
        class: Class,
        before: Key,
        mut room: Room,
    ) -> Result<Stretch, Fatal> {
        self.mem.settle();
        let mut tails = self.tails(topic, class, before)?;
        let mut stretch = Stretch::default();
        let mut effort = Effort::new();
        while room.is_left()
            && let Some(key) = tails.last()
        {
            if !effort.is_left() {
                // The next reading begins with this one.
                stretch.next = Some((key.0, dormouse_core::job::JobId(key.1.0.saturating_add(1))));
                break;
            }
            let place = Place { topic, class, due_at: key.0, id: key.1 };
            match self.read_before(&mut tails, place)? {
                (Some(resting), _) => {
                    room.take(&resting.job);
                    stretch.jobs.push(resting);
                }
                (None, bytes) => effort.pass(bytes),
            }
        }
        Ok(stretch)
    }

    fn tails(&mut self, topic: TopicNo, class: Class, before: Key) -> Result<Tails, Fatal> {
        let mem = self.mem.before(topic, class, before);
        let mut tails = Tails { mem, frozen: Vec::new(), runs: Vec::new() };
        for frozen in &self.frozen {
            let bound = self.frontiers.bound(topic, class, frozen.age);
            let last = frozen.table.before(topic, class, before);
            tails.frozen.push(last.filter(|key| bound.is_some_and(|bound| *key >= bound)));
        }
        for open in &self.runs {
            let mut tail = None;
            if let Some(bound) = self.frontiers.bound(topic, class, open.age()) {
                let run = &open.run;
                let loc = run.seek_back(&mut self.cache, topic, class, before).map_err(stopped)?;
                if let Some(loc) = loc {
                    let head = run.head(&mut self.cache, loc).map_err(stopped)?;
                    tail = Some(((head.place.due_at, head.place.id), loc));
                }
                tail = tail.filter(|(key, _)| *key >= bound);
            }
            tails.runs.push(tail);
        }
        Ok(tails)
    }

    /// Reads the last place over all sources and goes before it in each. Gives also the bytes that
    /// were read.
    fn read_before(
        &mut self,
        tails: &mut Tails,
        place: Place,
    ) -> Result<(Option<Resting>, usize), Fatal> {
        let (key, topic, class) = ((place.due_at, place.id), place.topic, place.class);
        // Oldest first, so that the newest entry wins.
        let (mut job, mut payload_of, mut put_batch, mut bytes) = (None, None, 0, 0);
        for (index, tail) in tails.runs.iter_mut().enumerate() {
            let Some((_, loc)) = tail.filter(|(at, _)| *at == key) else { continue };
            let open = &self.runs[index];
            let entry = open.run.entry(&mut self.cache, loc).map_err(stopped)?;
            let bound = self.frontiers.bound(topic, class, open.age());
            let before = open.run.prev(&mut self.cache, loc).map_err(stopped)?;
            *tail = match before {
                Some(loc) => {
                    let head = open.run.head(&mut self.cache, loc).map_err(stopped)?;
                    let key = (head.place.due_at, head.place.id);
                    bound.is_some_and(|bound| key >= bound).then_some((key, loc))
                }
                None => None,
            };
            payload_of = entry.payload.map(|payload| (index, payload));
            bytes += payload_of.as_ref().map_or(0, |(_, payload)| payload.len());
        }
        let frozen = tails.frozen.iter_mut().enumerate();
        for (index, tail) in frozen.filter(|(_, tail)| **tail == Some(key)) {
            let source = &self.frozen[index];
            let bound = self.frontiers.bound(topic, class, source.age);
            let last = source.table.before(topic, class, key);
            *tail = last.filter(|key| bound.is_some_and(|bound| *key >= bound));
            payload_of = None;
            job = source.table.job(place);
            put_batch = source.table.get(place).map_or(0, |slot| source.table.put_batch(&slot));
        }
        if tails.mem == Some(key) {
            tails.mem = self.mem.before(topic, class, key);
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
