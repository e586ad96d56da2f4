//! The sources, and the queries over all of them.

use std::ops::Range;
use std::sync::Arc;

use dormouse_core::Map;
use dormouse_core::error::Fatal;
use dormouse_core::job::{Content, Job, JobId};
use dormouse_core::place::{Class, Place};
use dormouse_core::topic::TopicNo;

use super::key_filters::{Coverage, KeyFilters};
use super::stopped;
use crate::codec::decode_payload;
use crate::damage::Damage;
use crate::frontier::Frontiers;
use crate::memtable::{Key, Memtable};
use crate::run::{BlockCache, Loc, Run};

/// Bytes of decoded run blocks kept for the next look.
const CACHE_BYTES: usize = 24 << 20;

/// Ranks in runs that one count of steps asks for: about a millisecond.
const STEP_RANKS_MAX: usize = 256;
/// Instants whose rank one count of steps asks for at least: it must come to the first step.
const STEP_RANKS_MIN: usize = 16;

/// A memtable that is being written as a run.
pub(crate) struct FrozenMemtable {
    pub(crate) table: Arc<Memtable>,
    /// The run-to-be.
    pub(crate) no: u64,
    pub(crate) age: u64,
    /// Entries consumed since it was frozen.
    pub(crate) consumed: u64,
}

/// A run in use.
pub(crate) struct OpenRun {
    pub(crate) run: Arc<Run>,
    /// Entries consumed; fewer than in truth after a purge, so it only ever delays a clean-up.
    pub(crate) consumed: u64,
    /// It is being merged.
    pub(crate) merging: bool,
    pub(crate) coverage: Coverage,
}

impl OpenRun {
    /// A run of which this many entries are consumed.
    pub(crate) fn new(run: Arc<Run>, consumed: u64) -> OpenRun {
        let coverage = Coverage::of(&run);
        OpenRun { run, consumed, merging: false, coverage }
    }

    /// Its keys are in the filters over all runs.
    pub(crate) fn is_covered(&self) -> bool {
        self.coverage == Coverage::Covered
    }

    pub(crate) fn age(&self) -> u64 {
        self.run.meta().age
    }

    pub(crate) fn no(&self) -> u64 {
        self.run.meta().no
    }

    /// Every entry is consumed.
    pub(crate) fn is_done(&self) -> bool {
        self.consumed >= self.run.meta().entries
    }
}

/// All sources; lists are oldest first.
pub(crate) struct Sources {
    pub(crate) mem: Memtable,
    pub(crate) frozen: Vec<FrozenMemtable>,
    pub(crate) runs: Vec<OpenRun>,
    pub(crate) frontiers: Frontiers,
    pub(crate) cache: BlockCache,
    pub(crate) key_filters: KeyFilters,
    /// Topics from this number on are too young to be in a source that no longer changes.
    pub(crate) topics_frozen: u32,
    /// Entries of the merge under way that were consumed since it began.
    pub(crate) merge_consumed: u64,
    /// Jobs that purges took, about, since runs were last looked through for them.
    pub(crate) purged_jobs: u64,
}

impl Sources {
    pub(crate) fn new(mem: Memtable, runs: Vec<OpenRun>, frontiers: Frontiers) -> Sources {
        let mut sources = Sources {
            mem,
            frozen: Vec::new(),
            runs,
            frontiers,
            cache: BlockCache::new(CACHE_BYTES),
            key_filters: KeyFilters::default(),
            topics_frozen: 1,
            merge_consumed: 0,
            purged_jobs: 0,
        };
        sources.note_covered();
        sources
    }

    /// The age of the newest source that no longer changes; 0 = there is none.
    pub(crate) fn newest_age(&self) -> u64 {
        let frozen = self.frozen.last().map(|frozen| frozen.age);
        frozen.or_else(|| self.runs.last().map(OpenRun::age)).unwrap_or(0)
    }

    /// The age of the oldest source that no longer changes.
    pub(crate) fn oldest_age(&self) -> u64 {
        let run = self.runs.first().map(OpenRun::age);
        run.or_else(|| self.frozen.first().map(|frozen| frozen.age)).unwrap_or(u64::MAX)
    }

    /// Classes of a topic in any source, from this one on, ascending, at most so many; some may be
    /// consumed by now.
    pub(crate) fn classes(
        &self,
        topic: TopicNo,
        from: Class,
        max: usize,
    ) -> Result<Vec<Class>, Fatal> {
        let mut classes: Vec<Class> = self.mem.classes(topic, from).take(max).collect();
        for frozen in &self.frozen {
            classes.extend(frozen.table.classes(topic, from).take(max));
        }
        for open in &self.runs {
            classes.extend(open.run.classes(topic, from, max).map_err(stopped)?);
        }
        classes.sort_unstable();
        classes.dedup();
        classes.truncate(max);
        Ok(classes)
    }

    /// Takes runs off the list. To drop one may take long.
    pub(crate) fn remove_runs(&mut self, is_gone: impl Fn(u64) -> bool) -> Vec<Arc<Run>> {
        let gone = self.runs.extract_if(.., |open| is_gone(open.no()));
        gone.map(|open| open.run).collect()
    }

    /// How many there are, the memtable included.
    pub(crate) fn len(&self) -> usize {
        1 + self.frozen.len() + self.runs.len()
    }

    /// These runs are being merged from now on.
    pub(crate) fn begin_merge(&mut self, chosen: Range<usize>) {
        self.merge_consumed = 0;
        for open in self.runs.get_mut(chosen).into_iter().flatten() {
            open.merging = true;
        }
    }

    /// The merge is over; gives how many of its entries were consumed meanwhile, at least.
    pub(crate) fn end_merge(&mut self) -> u64 {
        self.runs.iter_mut().for_each(|open| open.merging = false);
        std::mem::take(&mut self.merge_consumed)
    }

    /// Everything of a topic is consumed: about so many jobs.
    pub(crate) fn purge(&mut self, topic: TopicNo, jobs: u64) {
        self.mem.purge(topic);
        let newest = self.newest_age();
        // Topics come and go by the million: most live and vanish within one memtable.
        if newest > 0 && topic.topic().0 < self.topics_frozen {
            self.frontiers.purge(topic, newest);
            self.purged_jobs += jobs;
        }
    }

    /// How many rest in a lane with `due_at <= until`: weights are ranks in every source.
    pub(crate) fn count(&mut self, topic: TopicNo, class: Class, until: u64) -> Result<u64, Fatal> {
        let mut weight = self.mem.rank(topic, class, until);
        for frozen in &self.frozen {
            if let Some(bound) = self.frontiers.bound(topic, class, frozen.age) {
                weight += frozen.table.weigh(topic, class, bound, until);
            }
        }
        for open in &self.runs {
            let Some(bound) = self.frontiers.bound(topic, class, open.age()) else { continue };
            // Nothing below the bound counts, also where the question ends before it.
            let below =
                until.checked_add(1).map_or((u64::MAX, JobId(u64::MAX)), |due| (due, JobId(0)));
            let run = &open.run;
            let upto =
                run.rank(&mut self.cache, topic, class, below.max(bound)).map_err(stopped)?;
            let consumed = if bound == (0, JobId(0)) {
                0
            } else {
                run.rank(&mut self.cache, topic, class, bound).map_err(stopped)?
            };
            weight += upto - consumed;
        }
        debug_assert!(weight >= 0, "lane {topic:?} {class:?} weighs {weight}");
        Ok(u64::try_from(weight).unwrap_or(0))
    }

    /// How many rest in a lane in each of some steps of time; see `Timeline::count_steps`. The
    /// rank of an instant asks each run, so fewer steps are counted at once where there are many.
    pub(crate) fn count_steps(
        &mut self,
        topic: TopicNo,
        class: Class,
        from: u64,
        ends: &[u64],
    ) -> Result<Vec<u64>, Fatal> {
        self.mem.settle();
        let mut starts_at = from;
        let ends: Vec<u64> = ends
            .iter()
            .map(|end| {
                starts_at = starts_at.max(*end);
                starts_at
            })
            .collect();
        let mut counts = self.count_steps_of_runs(topic, class, from, &ends)?;
        let ends = &ends[..counts.len()];
        self.mem.weigh_steps(topic, class, (from, JobId(0)), ends, &mut counts);
        for frozen in &self.frozen {
            if let Some(bound) = self.frontiers.bound(topic, class, frozen.age) {
                let unread = bound.max((from, JobId(0)));
                frozen.table.weigh_steps(topic, class, unread, ends, &mut counts);
            }
        }
        Ok(counts.into_iter().map(|weight| u64::try_from(weight).unwrap_or(0)).collect())
    }

    /// The weights of some of the first steps in all runs. Where nothing is due for many steps,
    /// that takes two ranks.
    fn count_steps_of_runs(
        &mut self,
        topic: TopicNo,
        class: Class,
        from: u64,
        ends: &[u64],
    ) -> Result<Vec<i64>, Fatal> {
        let mut counts = Vec::with_capacity(ends.len());
        let Some(last) = ends.last() else { return Ok(counts) };
        let mut ranks_left = (STEP_RANKS_MAX / (self.runs.len() + 1)).max(STEP_RANKS_MIN);
        let mut before = self.run_ranks(topic, class, from)?;
        // Ends of steps whose rank is known, the nearest last.
        let mut known = vec![(ends.len(), self.run_ranks(topic, class, *last)?)];
        while let Some((upto, rank)) = known.last().copied() {
            let counted = counts.len();
            // Over all runs nothing weighs less than nothing.
            if rank == before || upto == counted + 1 {
                counts.resize(upto - 1, 0);
                counts.push(rank - before);
                before = rank;
                known.pop();
                continue;
            }
            if ranks_left == 0 {
                break;
            }
            ranks_left -= 1;
            let middle = counted + (upto - counted) / 2;
            known.push((middle, self.run_ranks(topic, class, ends[middle - 1])?));
        }
        Ok(counts)
    }

    /// The weight of all that is unread in runs and due before this instant.
    fn run_ranks(&mut self, topic: TopicNo, class: Class, before: u64) -> Result<i64, Fatal> {
        let mut weight = 0;
        for open in &self.runs {
            let Some(bound) = self.frontiers.bound(topic, class, open.age()) else { continue };
            // What is consumed is the same in all ranks of a lane, so differences are right.
            let below = bound.max((before, JobId(0)));
            weight += open.run.rank(&mut self.cache, topic, class, below).map_err(stopped)?;
        }
        Ok(weight)
    }

    /// The contents of the jobs that left these places, also before the bound: the newest run that
    /// has a job there decides. The places are in order, so that each block is read once.
    pub(crate) fn contents_at(&mut self, left: Vec<Place>) -> Result<Map<JobId, Content>, Fatal> {
        let mut contents = Map::default();
        let mut wanted = left;
        for index in (0..self.runs.len()).rev() {
            let (mut near, mut missing) = (None, Vec::new());
            for place in wanted {
                let open = &self.runs[index];
                let entry = open.run.at(&mut self.cache, &place, &mut near).map_err(stopped)?;
                match entry.and_then(|entry| entry.payload) {
                    Some(payload) => {
                        let job = self.decode(open, place.id, &payload)?;
                        contents.insert(place.id, job.content);
                    }
                    None => missing.push(place),
                }
            }
            wanted = missing;
        }
        match wanted.first() {
            None => Ok(contents),
            Some(place) => {
                Err(Fatal::new(format!("no run has the body of job {} any more", place.id)))
            }
        }
    }

    /// The job at a location of a run, by its position.
    pub(crate) fn job_at(&mut self, run: usize, loc: Loc, id: JobId) -> Result<Option<Job>, Fatal> {
        let open = &self.runs[run];
        let decode = |payload: &[u8]| decode_payload(id, payload);
        match open.run.with_payload(&mut self.cache, loc, decode).map_err(stopped)? {
            None => Ok(None),
            Some(Some(job)) => Ok(Some(job)),
            Some(None) => Err(undecodable(open, id)),
        }
    }

    /// A run's encoded job.
    pub(crate) fn decode(&self, open: &OpenRun, id: JobId, payload: &[u8]) -> Result<Job, Fatal> {
        decode_payload(id, payload).ok_or_else(|| undecodable(open, id))
    }

    /// The first unread entry of a lane in a frozen memtable.
    pub(crate) fn frozen_head(&self, index: usize, topic: TopicNo, class: Class) -> Option<Key> {
        let frozen = &self.frozen[index];
        let bound = self.frontiers.bound(topic, class, frozen.age)?;
        let (place, _) = frozen.table.first(topic, class, bound)?;
        Some((place.due_at, place.id))
    }
}

fn undecodable(open: &OpenRun, id: JobId) -> Fatal {
    let what = format!("the entry of job {id} cannot be decoded");
    stopped(Damage::corrupt(&format!("run {}", open.no()), 0, what))
}
