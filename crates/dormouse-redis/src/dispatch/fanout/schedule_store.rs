//! How schedules are kept in a partition: read with a revision, and written on the condition that
//! this is still theirs. `lua/schedule.lua` has the layouts.

use std::rc::Rc;

use bytes::Bytes;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::JobId;
use dormouse_core::limits::{PRIORITY_DEFAULT, TOPIC_SCHEDULES_MAX};
use dormouse_core::schedule::{Parked, Rest, Schedule, ScheduleName};
use dormouse_core::time::Now;
use dormouse_core::topic::TopicName;

use super::{Confirmed, Fanout};
use crate::codec::put::{self, ScheduledJob};
use crate::partition::{Effect, Partition};
use crate::wire::codes::{self, NEVER, ZONE};
use crate::wire::{Op, Reader, Writer, malformed, number};

/// How often a change is planned again because another server was first.
pub(super) const ATTEMPTS_MAX: usize = 64;
/// After so long a rule that could not be read is read again.
const BROKEN_RETRY_MS: u64 = 60_000;

/// A schedule as it was read.
#[derive(Clone, Debug)]
pub(super) struct StoredSchedule {
    pub(super) name: ScheduleName,
    revision: Bytes,
    pub(super) created_at: u64,
    pub(super) schedule: Schedule,
    /// Its newest job waits, is leased, or is between two attempts.
    pub(super) is_alive: bool,
    /// When it is due; beyond the first zone, it is parked.
    pub(super) score: u64,
}

impl StoredSchedule {
    pub(super) fn read(from: &mut Reader<'_>) -> Result<StoredSchedule, Error> {
        let name = std::str::from_utf8(from.short_bytes()?).unwrap_or_default();
        let (name, is_alive) = (ScheduleName::new(name)?, from.u8()? == 1);
        let (score, length) = (from.u64()?, from.u32()?);
        let mut value = Reader::new(from.bytes(length as usize)?);
        let revision = Bytes::copy_from_slice(value.bytes(8)?);
        let (newest, created_at) = (value.id()?, value.u48()?);
        let record = Bytes::copy_from_slice(value.rest());
        let mut schedule =
            Schedule::decode(&record).ok_or_else(|| malformed("a schedule cannot be read"))?;
        if let Some(last) = &mut schedule.progress.last_job {
            // The script knows it first.
            last.id = newest;
        }
        Ok(StoredSchedule { name, revision, created_at, schedule, is_alive, score })
    }

    pub(super) fn is_due(&self, now: Now) -> bool {
        self.score <= now.wall_ms
    }

    /// Its newest job.
    pub(super) fn newest(&self) -> Option<JobId> {
        self.schedule.progress.last_job.map(|last| last.id)
    }
}

/// A change of a schedule.
#[derive(Clone, Debug)]
pub(super) struct ScheduleWrite {
    pub(super) name: ScheduleName,
    /// Only if it has this revision; `None` = only if it is not there.
    revision: Option<Bytes>,
    /// Its time of creation and what it becomes, with its score; `None` = it goes.
    content: Option<(u64, Schedule, u64)>,
    /// Cancelled if it lives.
    pub(super) cancel: Option<JobId>,
    /// The job of a tick.
    pub(super) job: Option<ScheduledJob>,
}

impl ScheduleWrite {
    /// A schedule that is not there yet.
    pub(super) fn new(name: ScheduleName, schedule: Schedule, rest: Rest, now: Now) -> Self {
        let score = score(&schedule, rest, now);
        let content = score.map(|score| (now.wall_ms, schedule, score));
        ScheduleWrite { name, revision: None, content, cancel: None, job: None }
    }

    /// What becomes of one that is there.
    pub(super) fn of(stored: &StoredSchedule, schedule: Schedule, rest: Rest, now: Now) -> Self {
        let score = score(&schedule, rest, now);
        let content = score.map(|score| (stored.created_at, schedule, score));
        ScheduleWrite { content, ..ScheduleWrite::removal(stored) }
    }

    pub(super) fn removal(stored: &StoredSchedule) -> Self {
        let (name, revision) = (stored.name.clone(), Some(stored.revision.clone()));
        ScheduleWrite { name, revision, content: None, cancel: None, job: None }
    }

    /// When it is due then, unless it is parked or gone.
    pub(super) fn due_at(&self) -> Option<u64> {
        self.content.as_ref().map(|(_, _, score)| *score).filter(|&score| score < NEVER)
    }

    fn op(&self, partition: &Partition) -> Op {
        let config = partition.config.borrow();
        let id = |id: JobId| Writer::default().id(id).take();
        let mut newest = JobId(0);
        let (mut record, mut score, mut priorities) = (Bytes::new(), 0, Vec::new());
        if let Some((created_at, schedule, its_score)) = &self.content {
            newest = schedule.progress.last_job.map_or(newest, |last| last.id);
            record = Writer::default().u48(*created_at).bytes(&schedule.encode()).take();
            score = *its_score;
            priorities.push(schedule.definition.template.priority.unwrap_or(PRIORITY_DEFAULT));
        }
        let mut args = vec![
            Bytes::copy_from_slice(self.name.as_str().as_bytes()),
            self.revision.clone().unwrap_or_default(),
            number(config.version),
            number(score),
            number(partition.share(Some(TOPIC_SCHEDULES_MAX)).unwrap_or(0)),
            self.cancel.map(id).unwrap_or_default(),
            id(newest),
            record,
        ];
        if let Some(job) = &self.job {
            let limits = partition.limits(&config.settings);
            args.extend(put::scheduled_args(std::iter::once(job), limits));
        }
        Op { priorities, ..Op::new("schedule_set", args) }
    }
}

/// Where the entry of a schedule rests; `None` = it has ended.
fn score(schedule: &Schedule, rest: Rest, now: Now) -> Option<u64> {
    match (rest, schedule.progress.parked) {
        (Rest::Ended, _) => None,
        (Rest::Until(due_ms), _) => Some(due_ms.min(NEVER - 1)),
        (Rest::Parked, Parked::Broken) => Some(now.wall_ms + BROKEN_RETRY_MS),
        (Rest::Parked, Parked::Busy) => Some(ZONE + now.wall_ms),
        (Rest::Parked, Parked::Paused | Parked::No) => Some(2 * ZONE),
    }
}

/// What became of a change.
#[derive(Clone, Debug)]
pub(super) enum Written {
    /// The newest job, and when it is due if it was put.
    Done { newest: JobId, due_at: u64, confirmed: Confirmed },
    /// Another server was first: read it again.
    Stale,
    /// The topic has too many schedules.
    TooMany,
    /// There is no room for its job, or for itself.
    Refused(Error),
}

impl Fanout<'_> {
    /// The partition of a schedule, if the topic is known.
    pub(super) fn schedule_partition(
        self,
        topic: &TopicName,
        name: &ScheduleName,
    ) -> Option<Rc<Partition>> {
        let topic = self.dispatcher.known(topic)?;
        let name = Bytes::copy_from_slice(name.as_str().as_bytes());
        topic.partition_of_key(&name).cloned()
    }

    /// The schedule of this name, and the present.
    pub(super) async fn read_schedule(
        self,
        partition: &Partition,
        name: &ScheduleName,
    ) -> Result<(Option<StoredSchedule>, Now), Error> {
        let name = Bytes::copy_from_slice(name.as_str().as_bytes());
        let op = Op::new("schedule_get", vec![name]);
        let raw = self.submit_op(partition, Effect::Read, op).await?;
        let mut from = Reader::new(&raw.answer);
        let (code, fraction) = (from.u8()?, from.u8()? == 1);
        let now = Now { fraction, ..now_of(raw.now_ms) };
        let stored = match code {
            codes::FOUND => Some(StoredSchedule::read(&mut from)?),
            _ => None,
        };
        Ok((stored, now))
    }

    /// Submits a change now, and returns a future of what becomes of it.
    pub(super) fn write_schedule(
        self,
        partition: &Rc<Partition>,
        write: &ScheduleWrite,
    ) -> impl Future<Output = Result<Written, Error>> + use<> {
        let effect = if write.content.is_some() { Effect::Growth } else { Effect::Change };
        let answer = self.submit_op(partition, effect, write.op(partition));
        let (partition, due_at) = (Rc::clone(partition), write.due_at());
        let job_bytes = write.job.as_ref().map_or(0, |job| job.content.bytes());
        async move {
            let raw = answer.await?;
            let mut from = Reader::new(&raw.answer);
            let (code, put_code) = (from.u8()?, from.u8()?);
            let (newest, amount) = (from.id()?, from.u48()?);
            Ok(match code {
                codes::DONE => {
                    due_at.into_iter().for_each(|at_ms| partition.expect_tick(at_ms));
                    if newest != JobId(0) {
                        partition.note_number(newest);
                    }
                    Written::Done { newest, due_at: amount, confirmed: raw.confirmed }
                }
                codes::LOST => Written::Stale,
                codes::TOO_MANY => Written::TooMany,
                codes::CONFLICT => {
                    let settings = &partition.config.borrow().settings;
                    let topic = partition.topic.as_ref();
                    let topic = topic.ok_or_else(|| malformed("locks have no schedules"))?;
                    let error = put::no_room(put_code, amount, topic, job_bytes, settings)?;
                    Written::Refused(error)
                }
                _ => return Err(malformed("unknown result of a change of a schedule")),
            })
        }
    }
}

/// Both clocks of a rule are Redis' clock.
pub(super) fn now_of(now_ms: u64) -> Now {
    Now { steady_ms: now_ms, wall_ms: now_ms, fraction: false }
}

/// Servers change it faster than this one can.
pub(super) fn contended(name: &ScheduleName) -> Error {
    let text = format!("schedule {name} is changed by others all the time; try again");
    Error::new(Code::Unavailable, text)
}
