//! Deadlines: a job that nobody takes within its span after it was due dies.
//!
//! While a job with a span waits, an entry rests in a line beside its topic, at the deadline of
//! this rest. Its place follows from the job's place and span alone, so whatever moves or ends the
//! job moves or removes the entry, in the same batch. When its time comes, the job dies.

use bytes::Bytes;

use super::dead::Death;
use super::lines::{LineAlarms, LineKind, entry_gone};
use super::{Machine, Origin, Output, bury, job_cost};
use crate::error::Fatal;
use crate::fact::{Cause, Fact};
use crate::job::{Content, Job, Progress};
use crate::place::{Class, Place};
use crate::time::Now;
use crate::timeline::{Resting, Timeline};
use crate::topic::TopicNo;

/// The error text of jobs that were not taken in time.
const EXPIRED: &[u8] = b"expired";

/// The deadlines that need a look, besides their entries in the timeline.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    pub(super) line: LineAlarms,
    /// Entries that have to move because their jobs did, in this step.
    moves: Vec<EntryMove>,
}

/// An entry goes from one place to another; without the first it comes, without the second it goes.
#[derive(Clone, Copy, Debug)]
struct EntryMove {
    left: Option<Place>,
    at: Option<Place>,
}

/// The place of the entry of a job that rests here, if it has a deadline.
fn deadline_of(place: Place, content: &Content) -> Option<Place> {
    let span_ms = content.expires_after_ms;
    let has_deadline = span_ms > 0 && place.class.is_waiting() && place.topic.is_topic();
    has_deadline.then(|| Place {
        topic: place.topic.deadlines(),
        class: Class::waiting(0, place.class.clock()),
        due_at: place.due_at.saturating_add(span_ms),
        id: place.id.deadline(),
    })
}

impl Deadlines {
    /// Applies live: a job of this content left one place and rests at another now.
    pub(super) fn note_move(&mut self, left: Option<Place>, at: Option<Place>, content: &Content) {
        let of = |place: Option<Place>| place.and_then(|place| deadline_of(place, content));
        self.note(of(left), of(at));
    }

    /// Applies live: a job was put at this place, perhaps over one that rested.
    pub(super) fn note_put(&mut self, old: Option<&Resting>, at: Place, content: &Content) {
        self.note(old.and_then(Resting::deadline), deadline_of(at, content));
    }

    fn note(&mut self, left: Option<Place>, at: Option<Place>) {
        if left != at {
            self.moves.push(EntryMove { left, at });
        }
    }

    /// Applies: all of a topic's line is gone, and so are the jobs that waited.
    pub(super) fn forget(&mut self, topic: TopicNo) {
        let is_of = |place: Option<Place>| place.is_some_and(|at| at.topic == topic.deadlines());
        self.moves.retain(|moved| !is_of(moved.left) && !is_of(moved.at));
    }

    /// The steady instant of the next thing to do.
    pub(super) fn next(&self) -> Option<u64> {
        if self.moves.is_empty() { self.line.next() } else { Some(0) }
    }
}

impl Resting {
    /// The place of its entry: when it dies unless somebody takes it.
    fn deadline(&self) -> Option<Place> {
        deadline_of(self.place, &self.job.content)
    }

    /// Whether it waits although nobody took it in time: it must not be handed out any more.
    pub(crate) fn is_too_late(&self, now: Now) -> bool {
        self.deadline().is_some_and(|deadline| deadline.is_due(now))
    }
}

impl<T: Timeline> Machine<T> {
    /// Applies: an entry came to rest.
    pub(super) fn note_deadline(&mut self, topic: TopicNo) {
        if let Some(value) = self.topics.get_mut(topic) {
            value.has_deadlines = true;
        }
    }

    /// Moves the entries of jobs that moved, in the batch of the facts that did.
    pub(super) fn move_deadlines(&mut self, now: Now, out: &mut Output) {
        if self.deadlines.moves.is_empty() {
            return;
        }
        let mut moves = std::mem::take(&mut self.deadlines.moves);
        for EntryMove { left, at } in moves.drain(..) {
            match (left, at) {
                (left, Some(at)) => self.put_deadline(left, at, now, out),
                (Some(left), None) => self.remove_entry(left, None, out),
                (None, None) => {}
            }
        }
        // The next one needs no new memory.
        self.deadlines.moves = moves;
    }

    fn put_deadline(&mut self, left: Option<Place>, at: Place, now: Now, out: &mut Output) {
        // A job without a lease time is one of which only the id is known.
        let content = Content { ttr_ms: 1, ..Content::default() };
        let job = Job { id: at.id, content, progress: Progress::default() };
        let fact = Fact::Put { job, at, left, left_bytes: 0, key_loser: None };
        self.commit(fact, Origin::Live, out);
        if let Some(topic) = at.topic.deadline_topic() {
            self.deadlines.line.plan_entry(topic, at, now);
        }
    }

    /// Lets jobs die that were not taken in time.
    pub(super) fn meet_deadlines(
        &mut self,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        // None is met whose job has moved.
        self.move_deadlines(now, out);
        while let Some(topic) = self.first_due_line(LineKind::Deadlines, now, budget)? {
            while let Some(place) = self.line_head(LineKind::Deadlines, topic, now, budget)? {
                self.meet_deadline(place, now, budget, out)?;
            }
        }
        Ok(())
    }

    fn meet_deadline(
        &mut self,
        place: Place,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        let entry = self.timeline.take(place)?;
        *budget = budget.saturating_sub(1);
        self.commit(entry_gone(place, None), Origin::Taken(entry), out);
        let Some(id) = place.id.job_of_deadline() else { return Ok(()) };
        let Some(resting) = self.timeline.find(id)? else { return Ok(()) };
        *budget = budget.saturating_sub(job_cost(u64::from(resting.job.progress.bytes)));
        if resting.deadline() == Some(place) {
            self.die_too_late(resting, false, now, out)?;
            // Its entry is gone already.
            self.deadlines.moves.retain(|moved| moved.left != Some(place));
            self.move_deadlines(now, out);
        }
        Ok(())
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
