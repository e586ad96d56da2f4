//! Deadlines: a job that nobody takes within its span after it was due dies.
//!
//! Each time a job with a span comes to rest, an entry is written in a line beside its topic, at
//! the deadline of this rest. Its body is the job's id. When its time comes and the job still rests
//! as it did, the job dies. Either way the entry goes without a fact: a replay that finds it again
//! removes it again.

use bytes::Bytes;

use super::alarms::TopicAlarms;
use super::dead::Death;
use super::{Machine, Origin, Output, bury, job_cost};
use crate::error::Fatal;
use crate::fact::{Cause, Fact};
use crate::job::{Content, Job, JobId, Progress};
use crate::place::{Class, Place};
use crate::time::{Clock, Now};
use crate::timeline::{Next, Resting, Timeline};
use crate::topic::TopicNo;

/// The error text of jobs that were not taken in time.
const EXPIRED: &[u8] = b"expired";

/// The deadlines that need a look, besides their entries in the timeline.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    /// When the first entry of a topic is due.
    pub(super) alarms: TopicAlarms,
    /// The due entry there is not durable yet.
    blocked: Vec<TopicNo>,
    /// Jobs with a span that came to rest in this step: where, and their deadline.
    rested: Vec<(Place, u64)>,
}

impl Deadlines {
    /// Applies live: a job came to rest.
    pub(super) fn note_rest(&mut self, place: Place, content: &Content) {
        if content.expires_after_ms > 0 && place.class.is_waiting() && place.topic.is_topic() {
            let ends_at = place.due_at.saturating_add(content.expires_after_ms);
            self.rested.push((place, ends_at));
        }
    }

    /// The steady instant of the next thing to do.
    pub(super) fn next(&self) -> Option<u64> {
        if self.rested.is_empty() { self.alarms.next() } else { Some(0) }
    }

    pub(super) fn synced(&mut self) {
        for topic in std::mem::take(&mut self.blocked) {
            self.alarms.plan(topic, 0);
        }
    }
}

impl Resting {
    /// When it dies unless somebody takes it.
    fn deadline(&self) -> Option<(Clock, u64)> {
        let Place { class, due_at, .. } = self.place;
        let span_ms = self.job.content.expires_after_ms;
        let expires = span_ms > 0 && class.is_waiting();
        expires.then(|| (class.clock(), due_at.saturating_add(span_ms)))
    }

    /// Whether it waits although nobody took it in time: it must not be handed out any more.
    pub(crate) fn is_too_late(&self, now: Now) -> bool {
        self.deadline().is_some_and(|(clock, ends_at)| ends_at <= now.on(clock))
    }
}

/// The job that an entry names.
fn named_job(entry: &Job) -> Option<JobId> {
    Some(JobId(u64::from_be_bytes(entry.content.body.as_ref().try_into().ok()?)))
}

impl<T: Timeline> Machine<T> {
    /// Applies: an entry came to rest.
    pub(super) fn note_deadline(&mut self, topic: TopicNo) {
        if let Some(value) = self.topics.get_mut(topic) {
            value.has_deadlines = true;
        }
    }

    /// Writes the entries of jobs that came to rest, in the batch of the facts that brought them
    /// there.
    pub(super) fn put_deadlines(&mut self, now: Now, out: &mut Output) {
        if self.deadlines.rested.is_empty() {
            return;
        }
        let mut rested = std::mem::take(&mut self.deadlines.rested);
        for (place, ends_at) in rested.drain(..) {
            self.put_deadline(place, ends_at, now, out);
        }
        // The next one needs no new memory.
        self.deadlines.rested = rested;
    }

    fn put_deadline(&mut self, of: Place, ends_at: u64, now: Now, out: &mut Output) {
        let (topic, clock) = (of.topic, of.class.clock());
        let id = JobId(self.next_id);
        let class = Class::waiting(0, clock);
        let at = Place { topic: topic.deadlines(), class, due_at: ends_at, id };
        let body = Bytes::copy_from_slice(&of.id.0.to_be_bytes());
        // A job without a lease time is one of which only the id is known.
        let content = Content { body, ttr_ms: 1, ..Content::default() };
        let bytes = u32::try_from(content.bytes()).unwrap_or(u32::MAX);
        let job = Job { id, content, progress: Progress { bytes, ..Progress::default() } };
        let fact = Fact::Put { job, at, left: None, left_bytes: 0, key_loser: None };
        self.commit(fact, Origin::Live, out);
        let in_ms = now.until_ms(clock, ends_at);
        self.deadlines.alarms.plan(topic, now.steady_ms.saturating_add(in_ms));
    }

    /// Lets jobs die that were not taken in time.
    pub(super) fn meet_deadlines(
        &mut self,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        while *budget > 0
            && let Some(topic) = self.deadlines.alarms.pop_due(now)
        {
            *budget -= 1;
            self.meet_deadlines_of(topic, now, budget, out)?;
        }
        Ok(())
    }

    fn meet_deadlines_of(
        &mut self,
        topic: TopicNo,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        loop {
            let place = match self.timeline.next(topic.deadlines(), now)? {
                Next::Due(_) if *budget == 0 => {
                    self.deadlines.alarms.plan(topic, 0);
                    return Ok(());
                }
                Next::Due(place) => place,
                Next::In(ms) => {
                    self.deadlines.alarms.plan(topic, now.steady_ms.saturating_add(ms));
                    return Ok(());
                }
                Next::Blocked => {
                    self.deadlines.blocked.push(topic);
                    return Ok(());
                }
                Next::Empty => {
                    if let Some(value) = self.topics.get_mut(topic) {
                        value.has_deadlines = false;
                    }
                    return Ok(());
                }
                Next::Again | Next::Unread => {
                    self.deadlines.alarms.plan(topic, 0);
                    *budget = 0;
                    return Ok(());
                }
            };
            self.meet_deadline(topic, place, now, budget, out)?;
        }
    }

    fn meet_deadline(
        &mut self,
        topic: TopicNo,
        place: Place,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        let entry = self.timeline.take(place)?;
        *budget = budget.saturating_sub(1);
        let Some(id) = named_job(&entry.job) else { return Ok(()) };
        let Some(resting) = self.timeline.find(id)? else { return Ok(()) };
        *budget = budget.saturating_sub(job_cost(u64::from(resting.job.progress.bytes)));
        let is_of_this_rest = resting.place.topic == topic
            && resting.deadline() == Some((place.class.clock(), place.due_at));
        if is_of_this_rest { self.die_too_late(resting, false, now, out) } else { Ok(()) }
    }

    /// Lets a waiting job die that was not taken in time. `taken` says that it has left the
    /// timeline already.
    pub(crate) fn die_too_late(
        &mut self,
        resting: Resting,
        taken: bool,
        now: Now,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        let left = resting.place;
        let mut progress = resting.job.progress.clone();
        progress.error = Some(Bytes::from_static(EXPIRED));
        let place = bury(left.topic, left.id, now, &mut progress);
        let death = Death { left: Some(left), place, progress, cause: Cause::TooLate };
        let origin = if taken { Origin::Taken(resting) } else { Origin::Found(resting) };
        self.die(now, death, origin, out)
    }
}
