//! The seam below the rules: where waiting jobs, dead jobs and key holds rest.
//!
//! The machine decides, a timeline keeps. In memory it is a map; on disk it is a memtable and
//! sorted runs. A timeline knows places and jobs, never tokens, attempts or settings.

pub mod memory;

use crate::error::Fatal;
use crate::job::{Job, JobId};
use crate::place::{Class, Place};
use crate::time::Now;
use crate::topic::TopicNo;

/// The batch that put a job, as the store counts them; a job can be handed out only once its put
/// is durable. 0 = durable already.
pub type BatchNo = u64;

/// A resting job and where it rests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resting {
    /// The place.
    pub place: Place,
    /// The job; of a hold only id and key.
    pub job: Job,
    /// The batch that put it.
    pub put_batch: BatchNo,
}

/// A topic's offer to a reserve, now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This one is to be taken next: smallest priority, then longest overdue, then smallest id.
    Due(Place),
    /// Nothing is due; the earliest job could be due in this many ms (a lower bound, at least 1).
    In(u64),
    /// The due job was put by a batch that is not durable yet; ask again after the next sync.
    Blocked,
    /// Nothing waits here.
    Empty,
    /// Many jobs that were cancelled lie before the head. A portion of them was passed; the next
    /// question goes on from there.
    Again,
    /// The head has still to be read, and as much was read as one tick may; see
    /// [`Timeline::renew`].
    Unread,
}

/// The first of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// It rests here.
    At(Place),
    /// The lane is empty.
    Empty,
    /// See [`Next::Again`] and [`Next::Unread`].
    Again,
}

/// How much is read at once.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// How many jobs.
    pub jobs: usize,
    /// Bytes of their bodies, keys and headers; the job that exceeds them is the last.
    pub bytes: u64,
}

impl Room {
    /// At most this many jobs, however large.
    pub fn jobs(jobs: usize) -> Room {
        Room { jobs, bytes: u64::MAX }
    }

    /// Whether another job is to be read.
    pub fn is_left(&self) -> bool {
        self.jobs > 0
    }

    /// This one was read.
    pub fn take(&mut self, job: &Job) {
        let left = self.bytes.checked_sub(u64::from(job.progress.bytes));
        self.bytes = left.unwrap_or(0);
        self.jobs = if left.is_some() { self.jobs.saturating_sub(1) } else { 0 };
    }
}

/// Jobs of a lane that were read at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// In order.
    pub jobs: Vec<Resting>,
    /// Reading stopped here, with room left, because it had passed many jobs that were cancelled.
    /// There may be more from here on.
    pub next: Option<(u64, JobId)>,
}

/// Where waiting jobs rest.
///
/// A place given to `take` must be the one that `next` or `oldest` last answered for its lane:
/// taking consumes at the head. Everything that leaves from elsewhere leaves by `depart`.
pub trait Timeline {
    /// A job arrives. Its place is free.
    fn arrive(&mut self, place: Place, job: &Job, put_batch: BatchNo);

    /// The job that rests at this place, wherever in its lane that is, leaves.
    fn depart(&mut self, place: Place);

    /// Replay: something left this place, possibly long before what is known here began. Gives the
    /// job if this replay brought it; else a stub that is completed after the replay.
    fn depart_replayed(&mut self, place: Place) -> Job;

    /// The topic's offer.
    fn next(&mut self, topic: TopicNo, now: Now) -> Result<Next, Fatal>;

    /// The first of a lane, due or not, durable or not. The lane may be one of dead jobs or holds.
    fn oldest(&mut self, topic: TopicNo, class: Class) -> Result<Head, Fatal>;

    /// Takes the job, or the hold, at the head of a lane. A hold that is over is taken without a
    /// fact: a replay may find it again.
    fn take(&mut self, place: Place) -> Result<Resting, Fatal>;

    /// The resting job of this id; holds do not count.
    fn find(&mut self, id: JobId) -> Result<Option<Resting>, Fatal>;

    /// Where the job of this id rests; holds do not count. As `find`, without reading the job.
    fn place_of(&mut self, id: JobId) -> Result<Option<Place>, Fatal>;

    /// The resting job, or else the hold, that has this key. A hold may be past its end.
    fn find_key(&mut self, topic: TopicNo, key: &[u8]) -> Result<Option<Resting>, Fatal>;

    /// Everything that rests in the topic goes, holds too: so many jobs, besides holds.
    fn purge(&mut self, topic: TopicNo, jobs: u64);

    /// From here on as much may be read for `next` and `oldest` as in one tick. Beyond that they
    /// say so, and go on from there in the next one.
    fn renew(&mut self) {}

    /// How many sources a question about one lane asks: what it costs.
    fn sources(&self) -> usize {
        1
    }

    /// Classes of waiting jobs in the topic from this one on, ascending: `max` of them, or fewer
    /// if there are no more. May name classes that are empty by now.
    fn classes(&mut self, topic: TopicNo, from: Class, max: usize) -> Result<Vec<Class>, Fatal>;

    /// How many rest in the lane with `due_at <= until`, at a cost independent of how many.
    fn count(&mut self, topic: TopicNo, class: Class, until: u64) -> Result<u64, Fatal>;

    /// How many rest in the lane in each of some steps of time: the first lasts from `from` until
    /// before the first of `ends`, each other until before the next. If that are many, it counts
    /// some of the first ones, at least one.
    fn count_steps(
        &mut self,
        topic: TopicNo,
        class: Class,
        from: u64,
        ends: &[u64],
    ) -> Result<Vec<u64>, Fatal>;

    /// Jobs of the lane with `(due_at, id) >= from`, in order, no more than there is room for. The
    /// last one may be the first that no longer fits. It passes a bounded number of cancelled ones,
    /// and remembers them: asked again, it goes on behind them.
    fn page(
        &mut self,
        topic: TopicNo,
        class: Class,
        from: (u64, JobId),
        room: Room,
    ) -> Result<Stretch, Fatal>;

    /// As `page`, backwards: jobs of the lane with `(due_at, id) < before`, the last one first.
    /// `next` is then a position before which it goes on.
    fn page_back(
        &mut self,
        topic: TopicNo,
        class: Class,
        before: (u64, JobId),
        room: Room,
    ) -> Result<Stretch, Fatal>;
}
