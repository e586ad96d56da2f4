//! Heads of lanes: the first unread entry of each source, and when each lane is to be read again.
//!
//! Per topic, classes are either *due* (worth a look now) or *later* (not before an instant). The
//! instants are lower bounds: a head that left otherwise only makes one look come for nothing. So
//! asking a topic costs its due classes, not all its classes.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_core::Map;
use dormouse_core::error::Fatal;
use dormouse_core::job::JobId;
use dormouse_core::place::{Class, Place};
use dormouse_core::time::{Clock, Now};
use dormouse_core::timeline::{BatchNo, Head, Next, Resting};
use dormouse_core::topic::TopicNo;

use super::effort::Effort;
use super::sources::Sources;
use super::stopped;
use crate::memtable::Key;
use crate::run::{EntryHead, Loc};

/// The first unread entry of a lane in a run.
#[derive(Clone, Copy, Debug)]
struct RunHead {
    key: Key,
    loc: Loc,
    is_job: bool,
    /// Of its job.
    bytes: usize,
}

/// The first entry of a lane in the memtable.
#[derive(Clone, Copy, Debug)]
struct MemHead {
    key: Key,
    is_job: bool,
    put_batch: BatchNo,
}

/// The first unread entry of a lane in each source, in the order of `Sources`.
#[derive(Debug)]
struct Lane {
    /// `None` = it has changed since it was last looked for, which costs more than all the rest.
    mem: Option<Option<MemHead>>,
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

/// The first place of a lane over all sources.
#[derive(Clone, Copy, Debug)]
struct First {
    key: Key,
    /// The newest source that has it, and whether it has a job there.
    speaker: NewestSource,
    is_job: bool,
    put_batch: BatchNo,
}

/// The result of a look at a lane.
#[derive(Clone, Copy, Debug)]
enum Look {
    Job(HeadJob),
    Empty,
    /// So many tombstones were passed that others must have their turn.
    Again,
    /// The lane has still to be read, and so much was read that others must have their turn.
    Unread,
}

/// Classes that are asked for at once.
const CLASSES: usize = 64;

/// The state of a topic's lanes.
#[derive(Debug)]
pub(super) struct TopicHeads {
    topic: TopicNo,
    /// Classes from this one on have still to be asked for; `None` = there are no more. Those in
    /// which a job arrived since are known all the same.
    unlisted: Option<Class>,
    lanes: BTreeMap<Class, Lane>,
    due: BTreeSet<Class>,
    later_steady: BTreeSet<(u64, Class)>,
    later_wall: BTreeSet<(u64, Class)>,
    /// The instant under which a class stands in one of the two sets.
    postponed: Map<Class, u64>,
    /// The result of the last look, while nothing has changed since: most looks are followed by
    /// a take.
    looked: Option<HeadJob>,
}

impl TopicHeads {
    /// A topic of which nothing is known yet.
    pub(super) fn new(topic: TopicNo) -> TopicHeads {
        TopicHeads {
            topic,
            unlisted: Some(Class::FIRST),
            lanes: BTreeMap::new(),
            due: BTreeSet::new(),
            later_steady: BTreeSet::new(),
            later_wall: BTreeSet::new(),
            postponed: Map::default(),
            looked: None,
        }
    }

    /// A job arrived: it may be the new head of its class.
    pub(super) fn arrived(&mut self, place: &Place) {
        if place.class.is_offered() {
            self.due.insert(place.class);
        }
        self.departed(place);
    }

    /// The memtable's entry at this place has changed.
    pub(super) fn departed(&mut self, place: &Place) {
        self.looked = None;
        if let Some(lane) = self.lanes.get_mut(&place.class) {
            lane.mem_changed((place.due_at, place.id));
        }
    }

    /// See `Timeline::next`.
    pub(super) fn next(
        &mut self,
        sources: &mut Sources,
        now: Now,
        durable: u64,
        effort: &mut Effort,
    ) -> Result<Next, Fatal> {
        self.promote(now);
        let mut best: Option<Place> = None;
        let mut blocked = false;
        let mut from = None;
        // Classes ascend by priority; the two clocks of one priority compete by lateness.
        loop {
            let class = match self.next_due(sources, from, effort)? {
                DueClass::Class(class) => class,
                DueClass::None => break,
                DueClass::Unread => return Ok(Next::Unread),
            };
            from = Some(class);
            if best.is_some_and(|best| best.class.priority() != class.priority()) {
                break;
            }
            let head = match self.look(sources, class, effort)? {
                Look::Job(head) => head,
                Look::Empty => {
                    self.due.remove(&class);
                    continue;
                }
                Look::Unread => return Ok(Next::Unread),
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

    /// The next class that is worth a look; asks for more classes if need be.
    fn next_due(
        &mut self,
        sources: &mut Sources,
        after: Option<Class>,
        effort: &mut Effort,
    ) -> Result<DueClass, Fatal> {
        loop {
            let known = next_class(&self.due, after);
            let Some(unlisted) = self.unlisted else {
                return Ok(known.map_or(DueClass::None, DueClass::Class));
            };
            if let Some(class) = known
                && class < unlisted
            {
                return Ok(DueClass::Class(class));
            }
            if !effort.is_left() {
                return Ok(DueClass::Unread);
            }
            effort.read_lane(sources.len());
            let classes = sources.classes(self.topic, unlisted, CLASSES)?;
            let is_full = classes.len() >= CLASSES;
            // Behind those that are offered there are only others.
            let last = classes.last().filter(|last| is_full && last.is_offered());
            self.unlisted = last.map(|last| last.following());
            self.due.extend(classes.into_iter().filter(|class| class.is_offered()));
        }
    }

    /// The first of a lane, due or not.
    pub(super) fn oldest(
        &mut self,
        sources: &mut Sources,
        class: Class,
        effort: &mut Effort,
    ) -> Result<Head, Fatal> {
        Ok(match self.look(sources, class, effort)? {
            Look::Job(head) => Head::At(head.place),
            Look::Empty => Head::Empty,
            Look::Again | Look::Unread => Head::Again,
        })
    }

    /// Consumes the head of a lane in all sources that have it.
    pub(super) fn take(
        &mut self,
        sources: &mut Sources,
        place: Place,
    ) -> Result<Option<Resting>, Fatal> {
        let head = match self.looked.take() {
            Some(head) if head.place == place => head,
            // It was looked at before: there is no tombstone before it any more.
            _ => match self.look(sources, place.class, &mut Effort::new())? {
                Look::Job(head) if head.place == place => head,
                _ => return Ok(None),
            },
        };
        self.looked = None;
        let Some(lane) = self.lanes.get_mut(&place.class) else { return Ok(None) };
        let job = match head.speaker {
            NewestSource::Mem => {
                sources.mem.settle();
                sources.mem.job(place)
            }
            NewestSource::FrozenMemtable(index) => sources.frozen[index].table.job(place),
            NewestSource::Run(index) => {
                let Some(run_head) = lane.runs[index] else { return Ok(None) };
                sources.job_at(index, run_head.loc, place.id)?
            }
        };
        lane.pop(sources, place)?;
        Ok(job.map(|job| Resting { place, job, put_batch: head.put_batch }))
    }

    /// The job at the head of a lane; tombstones before it are consumed on the way, and the
    /// frontier keeps how far that went.
    fn look(
        &mut self,
        sources: &mut Sources,
        class: Class,
        effort: &mut Effort,
    ) -> Result<Look, Fatal> {
        let topic = self.topic;
        let lane = match self.lanes.entry(class) {
            std::collections::btree_map::Entry::Occupied(lane) => lane.into_mut(),
            std::collections::btree_map::Entry::Vacant(_) if !effort.is_left() => {
                return Ok(Look::Unread);
            }
            std::collections::btree_map::Entry::Vacant(room) => {
                effort.read_lane(sources.len());
                room.insert(Lane::load(sources, topic, class)?)
            }
        };
        self.looked = None;
        loop {
            let Some(first) = lane.first(sources, topic, class) else { return Ok(Look::Empty) };
            let First { key: (due_at, id), speaker, is_job, put_batch } = first;
            let place = Place { topic, class, due_at, id };
            if is_job {
                let head = HeadJob { place, speaker, put_batch };
                self.looked = Some(head);
                return Ok(Look::Job(head));
            }
            if !effort.is_left() {
                return Ok(Look::Again);
            }
            effort.pass(lane.pop(sources, place)?);
        }
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

/// The next class of a topic that is worth a look.
#[derive(Clone, Copy, Debug)]
enum DueClass {
    Class(Class),
    None,
    /// It is not known yet, and so much was read that others must have their turn.
    Unread,
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
        let mut lane = Lane { mem: None, frozen: frozen.collect(), runs: Vec::new() };
        for open in &sources.runs {
            let head = match sources.frontiers.bound(topic, class, open.age()) {
                None => None,
                Some(bound) => {
                    let cache = &mut sources.cache;
                    let loc = open.run.seek(cache, topic, class, bound).map_err(stopped)?;
                    match loc {
                        Some(loc) => Some(RunHead::of(open.run.head(cache, loc).map_err(stopped)?)),
                        None => None,
                    }
                }
            };
            lane.runs.push(head);
        }
        Ok(lane)
    }

    /// The memtable's entry at this position has changed.
    fn mem_changed(&mut self, key: Key) {
        if self.mem.is_some_and(|head| head.is_none_or(|head| key <= head.key)) {
            self.mem = None;
        }
    }

    fn mem_head(&mut self, sources: &mut Sources, topic: TopicNo, class: Class) -> Option<MemHead> {
        *self.mem.get_or_insert_with(|| {
            sources.mem.settle();
            let (place, slot) = sources.mem.first(topic, class, (0, JobId(0)))?;
            let put_batch = sources.mem.put_batch(&slot);
            Some(MemHead { key: (place.due_at, place.id), is_job: slot.is_job(), put_batch })
        })
    }

    /// The first place over all sources; of those that have it, the newest speaks.
    fn first(&mut self, sources: &mut Sources, topic: TopicNo, class: Class) -> Option<First> {
        let mut first: Option<First> = None;
        // Oldest first, so that of equal places the newest stays.
        for (index, head) in self.runs.iter().enumerate() {
            let Some(RunHead { key, is_job, .. }) = *head else { continue };
            if first.is_none_or(|first| key <= first.key) {
                let speaker = NewestSource::Run(index);
                first = Some(First { key, speaker, is_job, put_batch: 0 });
            }
        }
        for (index, head) in self.frozen.iter().enumerate() {
            let Some(key) = *head else { continue };
            if first.is_none_or(|first| key <= first.key) {
                let place = Place { topic, class, due_at: key.0, id: key.1 };
                let table = &sources.frozen[index].table;
                let slot = table.get(place)?;
                let (speaker, is_job) = (NewestSource::FrozenMemtable(index), slot.is_job());
                first = Some(First { key, speaker, is_job, put_batch: table.put_batch(&slot) });
            }
        }
        if let Some(MemHead { key, is_job, put_batch }) = self.mem_head(sources, topic, class)
            && first.is_none_or(|first| key <= first.key)
        {
            first = Some(First { key, speaker: NewestSource::Mem, is_job, put_batch });
        }
        first
    }

    /// Consumes a place in every source that has it first. Gives the bytes that were read for it.
    fn pop(&mut self, sources: &mut Sources, place: Place) -> Result<usize, Fatal> {
        let key = (place.due_at, place.id);
        let mem = self.mem_head(sources, place.topic, place.class);
        if mem.is_some_and(|head| head.key == key) {
            sources.mem.pop(place);
            self.mem = None;
        }
        let mut popped = false;
        for (index, head) in self.frozen.iter_mut().enumerate().filter(|(_, k)| **k == Some(key)) {
            let frozen = &mut sources.frozen[index];
            frozen.consumed += 1;
            let after = frozen.table.after(place.topic, place.class, key);
            *head = after.map(|(place, _)| (place.due_at, place.id));
            popped = true;
        }
        let (mut merging, mut bytes) = (true, 0);
        // Newest first: of the runs being merged only the newest's entry outlives the merge, and
        // surely only if it is a job.
        for (index, head) in self.runs.iter_mut().enumerate().rev() {
            let Some(run_head) = head.filter(|head| head.key == key) else { continue };
            let open = &mut sources.runs[index];
            open.consumed += 1;
            if merging && open.merging {
                sources.merge_consumed += u64::from(run_head.is_job);
                merging = false;
            }
            let after = open.run.next_head(&mut sources.cache, run_head.loc).map_err(stopped)?;
            *head = after.map(RunHead::of);
            bytes += head.map_or(0, |head| head.bytes);
            popped = true;
        }
        if popped {
            let newest = sources.newest_age();
            sources.frontiers.raise(&place, newest);
        }
        Ok(bytes)
    }
}

impl RunHead {
    fn of(head: EntryHead) -> RunHead {
        let EntryHead { loc, place, is_job, bytes } = head;
        RunHead { key: (place.due_at, place.id), loc, is_job, bytes }
    }
}
