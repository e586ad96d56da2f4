//! The disk timeline: a memtable, frozen memtables and runs, read as one sorted whole.
//!
//! Each is a *source*. Rule 1: everything below a source's bound (see `frontier`) is consumed,
//! everything from it on is not. A job leaves otherwise than at the head of its lane only by a
//! tombstone in the memtable. Of equal places in several sources the newest speaks, and they are
//! consumed together.

mod effort;
mod find;
mod gaps;
mod heads;
mod key_filters;
mod page;
mod page_back;
mod sources;

use dormouse_core::Map;
use dormouse_core::error::Fatal;
use dormouse_core::job::{Content, Job, JobId};
use dormouse_core::place::{Class, Place};
use dormouse_core::time::Now;
use dormouse_core::timeline::{BatchNo, Head, Next, Resting, Room, Stretch, Timeline};
use dormouse_core::topic::TopicNo;

use crate::damage::Damage;
use effort::Effort;
use gaps::Gaps;
use heads::TopicHeads;
pub(crate) use key_filters::{Coverage, FilterRoom};
pub(crate) use sources::{FrozenMemtable, OpenRun, Sources};

/// Topics whose heads are kept; beyond it all are dropped and read again when asked for.
const HEADS_MAX: usize = 20_000;

/// Heads of a line beside a topic are dropped if nothing comes due there for so long.
const HEADS_IDLE_MS: u64 = 60_000;

/// Where waiting jobs rest on disk.
pub struct DiskTimeline {
    pub(crate) sources: Sources,
    /// Heads of lanes of topics that were asked for since the sources last changed.
    heads: Map<TopicNo, TopicHeads>,
    gaps: Gaps,
    /// How much may still be read for heads before the next tick.
    effort: Effort,
    /// Puts up to this batch may be handed out.
    durable: u64,
    /// Replay only: jobs whose content is still in a run, at the place they left first.
    stubs: Map<JobId, Place>,
}

impl DiskTimeline {
    pub(crate) fn new(sources: Sources) -> DiskTimeline {
        let (heads, gaps, stubs) = (Map::default(), Gaps::default(), Map::default());
        DiskTimeline { sources, heads, gaps, effort: Effort::new(), durable: 0, stubs }
    }

    /// Puts up to this batch are as durable as was promised.
    pub(crate) fn set_durable(&mut self, batch: u64) {
        self.durable = batch;
    }

    /// Changes the list of sources; positions in it are known nowhere else.
    pub(crate) fn change_sources<R>(&mut self, change: impl FnOnce(&mut Sources) -> R) -> R {
        self.heads.clear();
        let changed = change(&mut self.sources);
        self.sources.note_covered();
        changed
    }

    /// The heads of a topic, and what they need to look.
    fn heads(&mut self, topic: TopicNo) -> (&mut TopicHeads, &mut Sources, &mut Effort) {
        if self.heads.len() >= HEADS_MAX && !self.heads.contains_key(&topic) {
            self.heads.clear();
        }
        let heads = self.heads.entry(topic).or_insert_with(|| TopicHeads::new(topic));
        (heads, &mut self.sources, &mut self.effort)
    }

    /// After a replay: the contents of leased jobs that replay knew only by the place they left.
    pub(crate) fn stub_contents(&mut self, ids: &[JobId]) -> Result<Map<JobId, Content>, Fatal> {
        let left = |id: &JobId| {
            let left = self.stubs.get(id).copied();
            left.ok_or_else(|| Fatal::new(format!("job {id} came from nowhere")))
        };
        let mut places = ids.iter().map(left).collect::<Result<Vec<Place>, Fatal>>()?;
        places.sort_unstable();
        self.sources.contents_at(places)
    }

    /// After a replay: completes resting jobs that replay knew only by the place they left.
    pub(crate) fn complete_stubs(&mut self) -> Result<(), Fatal> {
        self.sources.mem.settle();
        let mut found = Vec::new();
        for (id, left) in std::mem::take(&mut self.stubs) {
            let places = self.sources.mem.places(id).filter(|place| place.class != Class::HOLD);
            let stub =
                |place: &Place| self.sources.mem.job(*place).is_some_and(|job| is_stub(&job));
            found.extend(places.filter(stub).map(|place| (left, place)));
        }
        found.sort_unstable();
        let left = found.iter().map(|(left, _)| *left).collect();
        let contents = self.sources.contents_at(left)?;
        for (_, place) in found {
            if let (Some(mut job), Some(content)) =
                (self.sources.mem.job(place), contents.get(&place.id))
            {
                job.content = content.clone();
                self.sources.mem.rewrite(place, &job);
            }
        }
        Ok(())
    }
}

/// A job that replay met without its content. A real job has a ttr of at least 1 ms.
pub(crate) fn is_stub(job: &Job) -> bool {
    job.content.ttr_ms == 0
}

/// A run that cannot be read stops the store.
pub(crate) fn stopped(damage: Damage) -> Fatal {
    Fatal::new(format!("the store cannot read its files: {damage}"))
}

impl Timeline for DiskTimeline {
    fn arrive(&mut self, place: Place, job: &Job, put_batch: BatchNo) {
        self.sources.mem.arrive(place, job, put_batch);
        self.gaps.arrived(&place);
        if let Some(heads) = self.heads.get_mut(&place.topic) {
            heads.arrived(&place);
        }
    }

    fn depart(&mut self, place: Place) {
        self.sources.mem.depart(place);
        if let Some(heads) = self.heads.get_mut(&place.topic) {
            heads.departed(&place);
        }
    }

    fn depart_replayed(&mut self, place: Place) -> Job {
        self.sources.mem.settle();
        let job = self.sources.mem.job(place).unwrap_or_else(|| {
            self.stubs.insert(place.id, place);
            Job { id: place.id, ..Job::default() }
        });
        self.depart(place);
        job
    }

    fn next(&mut self, topic: TopicNo, now: Now) -> Result<Next, Fatal> {
        let durable = self.durable;
        // After a start all lines beside topics are looked at, and most of them once: the blocks of
        // their heads would fill the cache.
        let is_first_look = !topic.is_topic() && !self.heads.contains_key(&topic);
        let (heads, sources, effort) = self.heads(topic);
        sources.cache.set_keeping(!is_first_look);
        let next = heads.next(sources, now, durable, effort);
        sources.cache.set_keeping(true);
        let next = next?;
        // A line beside a topic is asked again at its alarm: until then its heads would only take
        // memory, two kilobytes for each of perhaps thousands of topics with schedules.
        if !topic.is_topic() && matches!(next, Next::In(ms) if ms >= HEADS_IDLE_MS) {
            self.heads.remove(&topic);
        }
        Ok(next)
    }

    fn oldest(&mut self, topic: TopicNo, class: Class) -> Result<Head, Fatal> {
        let (heads, sources, effort) = self.heads(topic);
        heads.oldest(sources, class, effort)
    }

    fn take(&mut self, place: Place) -> Result<Resting, Fatal> {
        let (heads, sources, _) = self.heads(place.topic);
        heads
            .take(sources, place)?
            .ok_or_else(|| Fatal::new(format!("no job at {place:?}: this is a bug")))
    }

    fn find(&mut self, id: JobId) -> Result<Option<Resting>, Fatal> {
        self.sources.find(id, false)
    }

    fn place_of(&mut self, id: JobId) -> Result<Option<Place>, Fatal> {
        self.sources.place_of(id)
    }

    fn find_key(&mut self, topic: TopicNo, key: &[u8]) -> Result<Option<Resting>, Fatal> {
        self.sources.find_key(topic, key)
    }

    fn purge(&mut self, topic: TopicNo, jobs: u64) {
        self.sources.purge(topic, jobs);
        self.heads.remove(&topic);
    }

    fn renew(&mut self) {
        self.effort = Effort::new();
    }

    fn sources(&self) -> usize {
        self.sources.len()
    }

    fn classes(&mut self, topic: TopicNo, from: Class, max: usize) -> Result<Vec<Class>, Fatal> {
        // Dead jobs, holds and done jobs lie between those that are offered and those that are
        // parked.
        let mut classes = self.sources.classes(topic, from, max.saturating_add(3))?;
        classes.retain(|class| class.is_waiting());
        classes.truncate(max);
        Ok(classes)
    }

    fn count(&mut self, topic: TopicNo, class: Class, until: u64) -> Result<u64, Fatal> {
        self.sources.count(topic, class, until)
    }

    fn count_steps(
        &mut self,
        topic: TopicNo,
        class: Class,
        from: u64,
        ends: &[u64],
    ) -> Result<Vec<u64>, Fatal> {
        self.sources.count_steps(topic, class, from, ends)
    }

    fn page(
        &mut self,
        topic: TopicNo,
        class: Class,
        from: (u64, JobId),
        room: Room,
    ) -> Result<Stretch, Fatal> {
        let start = self.gaps.skip(topic, class, from);
        // So are their parked entries.
        self.sources.cache.set_keeping(topic.is_topic());
        let page = self.sources.page(topic, class, start, room);
        self.sources.cache.set_keeping(true);
        let page = page?;
        self.gaps.note((topic, class), from, page.first, page.passed);
        Ok(page.stretch)
    }

    fn page_back(
        &mut self,
        topic: TopicNo,
        class: Class,
        before: (u64, JobId),
        room: Room,
    ) -> Result<Stretch, Fatal> {
        self.sources.page_back(topic, class, before, room)
    }
}
