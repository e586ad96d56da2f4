//! Heads of lanes: the first unread entry of each source, and when each lane is to be read again.
//!
//! Per topic, classes are either *due* (worth a look now) or *later* (not before an instant). The
//! instants are lower bounds: a head that left otherwise only makes one look come for nothing. So
//! asking a topic costs its due classes, not all its classes.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_core::Map;
use dormouse_core::error::Fatal;
use dormouse_core::place::{Class, Place};
use dormouse_core::time::{Clock, Now};
use dormouse_core::timeline::{BatchNo, Head, Next, Resting};
use dormouse_core::topic::TopicNo;

use super::sources::Sources;
use super::stopped;
use crate::memtable::Key;
use crate::run::Loc;

/// The first unread entry of a lane in a run.
#[derive(Clone, Copy, Debug)]
struct RunHead {
    key: Key,
    loc: Loc,
    is_job: bool,
}

/// The first unread entry of a lane in each immutable source, in the order of `Sources`.
#[derive(Debug)]
struct Lane {
    frozen: Vec<Option<Key>>,
    runs: Vec<Option<RunHead>>,
}

/// Which source speaks for a place.
#[derive(Clone, Copy, Debug)]
enum NewestSource {
    Mem,
    FrozenMemtable(usize),
    Run(usize),
}

/// The job at the head of a lane.
#[derive(Clone, Copy, Debug)]
struct HeadJob {
    place: Place,
    speaker: NewestSource,
    put_batch: BatchNo,
}

/// The result of a look at a lane.
#[derive(Clone, Copy, Debug)]
enum Look {
    Job(HeadJob),
    Empty,
    /// So many tombstones were passed that others must have their turn.
    Again,
}

/// Tombstones that one look passes at most; about a millisecond.
const PASS_MAX: usize = 1_000;

/// The state of a topic's lanes.
#[derive(Debug)]
pub(super) struct TopicHeads {
    lanes: BTreeMap<Class, Lane>,
    due: BTreeSet<Class>,
    later_steady: BTreeSet<(u64, Class)>,
    later_wall: BTreeSet<(u64, Class)>,
    /// The instant under which a class stands in one of the two sets.
    postponed: Map<Class, u64>,
}

impl TopicHeads {
    /// A topic with these classes, none of them looked at yet.
    pub(super) fn new(classes: &[Class]) -> TopicHeads {
        TopicHeads {
            lanes: BTreeMap::new(),
            due: classes.iter().copied().filter(|class| class.is_waiting()).collect(),
            later_steady: BTreeSet::new(),
            later_wall: BTreeSet::new(),
            postponed: Map::default(),
        }
    }

    /// A job arrived in a class: it may be the new head.
    pub(super) fn arrived(&mut self, class: Class) {
        if class.is_waiting() {
            self.due.insert(class);
        }
    }

    /// See `Timeline::next`.
    pub(super) fn next(
        &mut self,
        sources: &mut Sources,
        topic: TopicNo,
        now: Now,
        durable: u64,
    ) -> Result<Next, Fatal> {
        self.promote(now);
        let mut best: Option<Place> = None;
        let mut blocked = false;
        let mut from = None;
        // Classes ascend by priority; the two clocks of one priority compete by lateness.
        while let Some(class) = next_class(&self.due, from) {
            from = Some(class);
            if best.is_some_and(|best| best.class.priority() != class.priority()) {
                break;
            }
            let head = match self.look(sources, topic, class)? {
                Look::Job(head) => head,
                Look::Empty => {
                    self.due.remove(&class);
                    continue;
                }
                // What lies behind may come before anything of a later class.
                Look::Again if best.is_none() => return Ok(Next::Again),
                Look::Again => break,
            };
            if !head.place.is_due(now) {
                self.postpone(head.place);
            } else if head.put_batch > durable {
                // Nothing of this lane may overtake it, or the bound would pass it unread.
                blocked = true;
            } else if best.is_none_or(|best| is_longer_overdue(&head.place, &best, now)) {
                best = Some(head.place);
            }
        }
        Ok(match best {
            Some(place) => Next::Due(place),
            None if blocked => Next::Blocked,
            None => self.soonest(now),
        })
    }

    /// The first of a lane, due or not.
    pub(super) fn oldest(
        &mut self,
        sources: &mut Sources,
        topic: TopicNo,
        class: Class,
    ) -> Result<Head, Fatal> {
        Ok(match self.look(sources, topic, class)? {
            Look::Job(head) => Head::At(head.place),
            Look::Empty => Head::Empty,
            Look::Again => Head::Again,
        })
    }

    /// Consumes the head of a lane in all sources that have it.
    pub(super) fn take(
        &mut self,
        sources: &mut Sources,
        place: Place,
    ) -> Result<Option<Resting>, Fatal> {
        // It was just looked at: there is no tombstone before it any more.
        let Look::Job(head) = self.look(sources, place.topic, place.class)? else {
            return Ok(None);
        };
        if head.place != place {
            return Ok(None);
        }
        let job = match head.speaker {
            NewestSource::Mem => sources.mem.job(place),
            NewestSource::FrozenMemtable(index) => sources.frozen[index].table.job(place),
            NewestSource::Run(index) => {
                let lane = self.lanes.get(&place.class).and_then(|lane| lane.runs[index]);
                let Some(run_head) = lane else { return Ok(None) };
                let open = &sources.runs[index];
                let entry = open.run.entry(&mut sources.cache, run_head.loc).map_err(stopped)?;
                let Some(payload) = entry.payload else { return Ok(None) };
                Some(sources.decode(&sources.runs[index], place.id, &payload)?)
            }
        };
        if let Some(lane) = self.lanes.get_mut(&place.class) {
            lane.pop(sources, place)?;
        }
        Ok(job.map(|job| Resting { place, job, put_batch: head.put_batch }))
    }

    /// The job at the head of a lane; tombstones before it are consumed on the way, and the
    /// frontier keeps how far that went.
    fn look(&mut self, sources: &mut Sources, topic: TopicNo, class: Class) -> Result<Look, Fatal> {
        let lane = match self.lanes.entry(class) {
            std::collections::btree_map::Entry::Occupied(lane) => lane.into_mut(),
            std::collections::btree_map::Entry::Vacant(room) => {
                room.insert(Lane::load(sources, topic, class)?)
            }
        };
        for _ in 0..PASS_MAX {
            match lane.first(sources, topic, class) {
                None => return Ok(Look::Empty),
                Some((place, Some((speaker, put_batch)))) => {
                    return Ok(Look::Job(HeadJob { place, speaker, put_batch }));
                }
                Some((place, None)) => lane.pop(sources, place)?,
            }
        }
        Ok(Look::Again)
    }

    /// Wakes the classes whose instant has passed.
    fn promote(&mut self, now: Now) {
        for (later, clock) in
            [(&mut self.later_steady, Clock::Steady), (&mut self.later_wall, Clock::Wall)]
        {
            while let Some((due_at, class)) = later.first().copied()
                && due_at <= now.on(clock)
            {
                later.pop_first();
                self.due.insert(class);
            }
        }
    }

    fn postpone(&mut self, head: Place) {
        self.due.remove(&head.class);
        let later = match head.class.clock() {
            Clock::Steady => &mut self.later_steady,
            Clock::Wall => &mut self.later_wall,
        };
        if let Some(before) = self.postponed.insert(head.class, head.due_at) {
            later.remove(&(before, head.class));
        }
        later.insert((head.due_at, head.class));
    }

    fn soonest(&self, now: Now) -> Next {
        let steady = self.later_steady.first().map(|(at, _)| now.until_ms(Clock::Steady, *at));
        let wall = self.later_wall.first().map(|(at, _)| now.until_ms(Clock::Wall, *at));
        match [steady, wall].into_iter().flatten().min() {
            Some(wait_ms) => Next::In(wait_ms.max(1)),
            None => Next::Empty,
        }
    }
}

fn next_class(due: &BTreeSet<Class>, after: Option<Class>) -> Option<Class> {
    use std::ops::Bound::{Excluded, Unbounded};
    match after {
        None => due.first().copied(),
        Some(after) => due.range((Excluded(after), Unbounded)).next().copied(),
    }
}

/// Whether a job goes before another of the same priority.
fn is_longer_overdue(place: &Place, than: &Place, now: Now) -> bool {
    let overdue_ms = |place: &Place| now.overdue_ms(place.class.clock(), place.due_at);
    (overdue_ms(than), place.id) < (overdue_ms(place), than.id)
}

impl Lane {
    fn load(sources: &mut Sources, topic: TopicNo, class: Class) -> Result<Lane, Fatal> {
        let frozen = (0..sources.frozen.len()).map(|i| sources.frozen_head(i, topic, class));
        let mut lane = Lane { frozen: frozen.collect(), runs: Vec::new() };
        for open in &sources.runs {
            let head = match sources.frontiers.bound(topic, class, open.age()) {
                None => None,
                Some(bound) => {
                    let cache = &mut sources.cache;
                    let loc = open.run.seek(cache, topic, class, bound).map_err(stopped)?;
                    loc.map(|loc| run_head(open, cache, loc)).transpose()?
                }
            };
            lane.runs.push(head);
        }
        Ok(lane)
    }

    /// The first place over all sources, and the newest source that has a job there; `None` for a
    /// tombstone.
    fn first(
        &self,
        sources: &Sources,
        topic: TopicNo,
        class: Class,
    ) -> Option<(Place, Option<(NewestSource, BatchNo)>)> {
        let mem = sources.mem.first(topic, class, (0, dormouse_core::job::JobId(0)));
        let mut first: Option<Key> = mem.map(|(place, _)| (place.due_at, place.id));
        for key in self.frozen.iter().flatten() {
            first = Some(first.map_or(*key, |first| first.min(*key)));
        }
        for head in self.runs.iter().flatten() {
            first = Some(first.map_or(head.key, |first| first.min(head.key)));
        }
        let key = first?;
        let place = Place { topic, class, due_at: key.0, id: key.1 };
        if let Some((at, slot)) = mem
            && at == place
        {
            return Some((
                place,
                slot.is_job().then_some((NewestSource::Mem, sources.mem.put_batch(&slot))),
            ));
        }
        if let Some(index) = self.frozen.iter().rposition(|head| *head == Some(key)) {
            let table = &sources.frozen[index].table;
            let slot = table.get(place)?;
            let speaks = (NewestSource::FrozenMemtable(index), table.put_batch(&slot));
            return Some((place, slot.is_job().then_some(speaks)));
        }
        let speaks = |head: &&RunHead| head.key == key;
        let mut runs = self.runs.iter().enumerate().rev();
        let (index, head) =
            runs.find_map(|(index, head)| head.as_ref().filter(speaks).map(|head| (index, head)))?;
        Some((place, head.is_job.then_some((NewestSource::Run(index), 0))))
    }

    /// Consumes a place in every source that has it first.
    fn pop(&mut self, sources: &mut Sources, place: Place) -> Result<(), Fatal> {
        let key = (place.due_at, place.id);
        if sources.mem.get(place).is_some() {
            sources.mem.pop(place);
        }
        let mut popped = false;
        for (index, head) in self.frozen.iter_mut().enumerate().filter(|(_, k)| **k == Some(key)) {
            let frozen = &mut sources.frozen[index];
            frozen.consumed += 1;
            let after = frozen.table.after(place.topic, place.class, key);
            *head = after.map(|(place, _)| (place.due_at, place.id));
            popped = true;
        }
        let mut merging = true;
        // Newest first: of the runs being merged only the newest's entry outlives the merge, and
        // surely only if it is a job.
        for (index, head) in self.runs.iter_mut().enumerate().rev() {
            let Some(run_head_now) = head.filter(|head| head.key == key) else { continue };
            let open = &mut sources.runs[index];
            open.consumed += 1;
            if merging && open.merging {
                sources.merge_consumed += u64::from(run_head_now.is_job);
                merging = false;
            }
            let after = open.run.next(&mut sources.cache, run_head_now.loc).map_err(stopped)?;
            *head = after.map(|loc| run_head(open, &mut sources.cache, loc)).transpose()?;
            popped = true;
        }
        if popped {
            let newest = sources.newest_age();
            sources.frontiers.raise(&place, newest);
        }
        Ok(())
    }
}

fn run_head(
    open: &super::sources::OpenRun,
    cache: &mut crate::run::BlockCache,
    loc: Loc,
) -> Result<RunHead, Fatal> {
    let entry = open.run.entry(cache, loc).map_err(stopped)?;
    let key = (entry.place.due_at, entry.place.id);
    Ok(RunHead { key, loc, is_job: entry.payload.is_some() })
}
