//! The one place where facts become effective, live and in a replay.

use super::topics::Topic;
use super::{Lease, Machine, Output};
use crate::fact::{Cause, Destination, Fact};
use crate::image::Counts;
use crate::job::{Content, Job, JobId, Progress};
use crate::place::{Class, Place};
use crate::timeline::{BatchNo, Resting, Timeline};
use crate::topic::TopicNo;

/// The job of a fact, as far as its source has it at hand.
#[derive(Debug)]
pub(crate) enum Origin {
    /// Nothing: the fact comes from the journal.
    Replay,
    /// Nothing, or a job that is leased.
    Live,
    /// A resting job that the timeline has let go at the head of its lane.
    Taken(Resting),
    /// A resting job that still rests.
    Found(Resting),
}

impl<T: Timeline> Machine<T> {
    /// Applies a fact from the journal: decides nothing, reads nothing.
    #[expect(clippy::needless_pass_by_value, reason = "a replayed fact is of no further use")]
    pub fn replay(&mut self, fact: Fact) {
        self.apply(&fact, Origin::Replay);
    }

    /// Makes a decision effective and hands it out to be made durable.
    pub(crate) fn commit(&mut self, fact: Fact, origin: Origin, out: &mut Output) {
        self.apply(&fact, origin);
        out.facts.push(fact);
    }

    fn apply(&mut self, fact: &Fact, origin: Origin) {
        match fact {
            Fact::Put { .. } => self.apply_put(fact, &origin),
            Fact::Move { .. } => self.apply_move(fact, origin),
            Fact::Purged { topic } => self.apply_purged(*topic),
            Fact::TopicBorn { topic, name } => {
                let mut value = Topic::new(name.clone());
                value.watch = self.waiters.link(name, *topic);
                self.topics.insert(*topic, value);
            }
            Fact::TopicGone { topic } => self.apply_gone(*topic),
            Fact::TopicSet { topic, settings } => {
                if let Some(value) = self.topics.get_mut(*topic) {
                    value.set(settings);
                    // What a limit held may be free now.
                    self.waiters.look_at(value.watch);
                }
                self.groups.settings_changed(*topic);
                self.topics.note_unused(*topic);
            }
            Fact::PushSet { topic, push } => {
                if let Some(value) = self.topics.get_mut(*topic) {
                    value.settings.push.clone_from(push);
                    self.waiters.look_at(value.watch);
                }
                self.topics.note_push(*topic);
                self.topics.note_unused(*topic);
            }
            Fact::TopicPaused { topic, pause } => {
                if let Some(value) = self.topics.get_mut(*topic) {
                    value.pause = *pause;
                    self.waiters.look_at(value.watch);
                }
                self.topics.note_unused(*topic);
            }
            Fact::LockHeld { name, owner, fence, depth, ttl_ms } => {
                self.note_fence(*fence);
                self.locks.hold(name, owner, *fence, *depth, *ttl_ms);
            }
            Fact::LockFreed { name } => {
                let holder = self.locks.free(name);
                self.holders.drop_lock(holder);
            }
        }
    }

    fn apply_put(&mut self, fact: &Fact, origin: &Origin) {
        let Fact::Put { job, at, left, left_bytes, key_loser } = fact else { return };
        if let (Some(topic), None) = (at.topic.scheduled_topic(), left) {
            self.count_schedule(topic, 1);
        }
        let replay = matches!(origin, Origin::Replay);
        if let Some(topic) = at.topic.deadline_topic() {
            self.note_deadline(topic);
        } else if !replay {
            let old = if let Origin::Found(old) = origin { Some(old) } else { None };
            self.deadlines.note_put(old, *at, &job.content);
        }
        if let Some(loser) = key_loser {
            self.leases.lose_key(*loser);
        }
        if at.class.is_parked() {
            self.note_parked(at.topic);
        }
        if let Some(place) = left {
            self.groups.job_left(place.id);
            if replay {
                self.timeline.depart_replayed(*place);
            } else {
                self.timeline.depart(*place);
            }
        }
        let put_batch = if replay { 0 } else { self.put_batch };
        self.timeline.arrive(*at, job, put_batch);
        if job.id.job_of_deadline().is_none() {
            self.next_id = self.next_id.max(job.id.0.saturating_add(1));
        }
        let watch = self.count(at.topic, |counts| {
            counts.puts += 1;
            if let Some(place) = left {
                leave(counts, place.class);
            }
            counts.waiting += 1;
            counts.bytes += u64::from(job.progress.bytes);
            counts.bytes = counts.bytes.saturating_sub(u64::from(*left_bytes));
        });
        self.waiters.look_at(watch);
    }

    fn apply_move(&mut self, fact: &Fact, origin: Origin) {
        let Fact::Move { id, topic, left, to, progress, key, cause } = fact else { return };
        if matches!(origin, Origin::Replay) {
            self.note_fence(progress.fence);
        }
        if let (Some(topic), Destination::Gone) = (topic.scheduled_topic(), to) {
            self.count_schedule(topic, -1);
        }
        let is_live = !matches!(origin, Origin::Replay);
        let (mut job, put_batch) = self.lift(*id, *left, to, origin);
        // A job that is parked has the deadline that it had.
        if is_live && *cause != Cause::Park {
            let at = if let Destination::Rest(place) = to { Some(*place) } else { None };
            self.deadlines.note_move(*left, at, &job.content);
        }
        let watch = self.count(*topic, |counts| count_move(counts, *left, to, progress, *cause));
        match left {
            None => self.note_slot(*topic, watch),
            Some(_) => self.groups.job_left(*id),
        }
        match to {
            Destination::Leased { ttr_ms, session } => {
                job.progress = progress.clone();
                let lease = Lease::new(*topic, job, put_batch, *ttr_ms, *session);
                self.insert_lease(*id, lease);
            }
            Destination::Rest(place) => {
                job.progress = progress.clone();
                self.timeline.arrive(*place, &job, put_batch);
                if place.class.is_parked() {
                    self.note_parked(*topic);
                } else if place.class.is_waiting() {
                    self.waiters.look_at(watch);
                }
            }
            Destination::Hold(place) => {
                let content = Content { key: key.clone(), ..Content::default() };
                let hold = Job { id: *id, content, progress: Progress::default() };
                self.timeline.arrive(*place, &hold, put_batch);
                if let Some(value) = self.topics.get_mut(*topic) {
                    value.holds_until = value.holds_until.max(place.due_at);
                }
                self.plan_sweep(*topic, place.due_at);
                self.topics.note_unused(*topic);
            }
            Destination::Gone => self.topics.note_unused(*topic),
        }
    }

    /// The job a move is about, out of where it was.
    fn lift(
        &mut self,
        id: JobId,
        left: Option<Place>,
        to: &Destination,
        origin: Origin,
    ) -> (Job, BatchNo) {
        match (left, origin) {
            // Nobody will ask for the content of a job that is gone.
            (None, _) if matches!(to, Destination::Gone | Destination::Hold(_)) => {
                let lease = self.remove_lease(id);
                if let Some(lease) = &lease {
                    self.note_tick_end(lease.topic, id, lease.job.tick());
                }
                (Job { id, ..Job::default() }, lease.map_or(0, |lease| lease.put_batch))
            }
            (None, _) => match self.remove_lease(id) {
                Some(lease) => {
                    if is_end(to) {
                        self.note_tick_end(lease.topic, id, lease.job.tick());
                    }
                    (lease.job.to_job(id), lease.put_batch)
                }
                None => (Job { id, ..Job::default() }, 0),
            },
            (Some(place), Origin::Taken(resting)) => {
                if is_end(to) {
                    self.note_tick_end(place.topic, id, resting.job.content.tick.as_deref());
                }
                (resting.job, resting.put_batch)
            }
            (Some(place), Origin::Found(resting)) => {
                self.timeline.depart(place);
                if is_end(to) {
                    self.note_tick_end(place.topic, id, resting.job.content.tick.as_deref());
                }
                (resting.job, resting.put_batch)
            }
            (Some(place), Origin::Replay) if matches!(to, Destination::Gone) => {
                self.timeline.depart(place);
                (Job { id, ..Job::default() }, 0)
            }
            (Some(place), Origin::Replay | Origin::Live) => {
                (self.timeline.depart_replayed(place), 0)
            }
        }
    }

    fn apply_purged(&mut self, topic: TopicNo) {
        let Some(value) = self.topics.get_mut(topic) else { return };
        let gone_bytes = value.counts.bytes.saturating_sub(value.leased_bytes);
        let Counts { waiting, dead, done, .. } = value.counts;
        self.timeline.purge(topic, waiting + dead + done);
        // Leased jobs get a new deadline when they rest again.
        if std::mem::take(&mut value.has_deadlines) {
            self.timeline.purge(topic.deadlines(), 0);
        }
        self.deadlines.forget(topic);
        value.holds_until = 0;
        value.has_parked = false;
        value.grouped_line = 0;
        self.groups.purged(topic);
        self.review_schedules(topic);
        self.count(topic, |counts| {
            counts.waiting = counts.waiting.saturating_sub(waiting);
            counts.dead = counts.dead.saturating_sub(dead);
            counts.done = counts.done.saturating_sub(done);
            counts.bytes = counts.bytes.saturating_sub(gone_bytes);
        });
        self.topics.note_unused(topic);
    }

    fn apply_gone(&mut self, topic: TopicNo) {
        if let Some(value) = self.topics.remove(topic) {
            self.topics.gone.add(&value.counts);
        }
        self.leases.take_release_end(topic);
        self.groups.purged(topic);
        // Holds that are over may still rest there.
        self.timeline.purge(topic, 0);
    }

    /// Changes the counts of a topic and the totals alike. Gives the topic's watch.
    fn count(
        &mut self,
        topic: TopicNo,
        change: impl Fn(&mut Counts),
    ) -> Option<super::waiters::WatchNo> {
        let value = self.topics.get_mut(topic)?;
        change(&mut value.counts);
        change(&mut self.totals);
        value.watch
    }
}

/// Whether a job that goes there lives no more.
fn is_end(to: &Destination) -> bool {
    match to {
        Destination::Gone | Destination::Hold(_) => true,
        Destination::Rest(place) => !place.class.is_waiting(),
        Destination::Leased { .. } => false,
    }
}

/// Whether a job that goes there counts against limits no more.
fn is_gone(to: &Destination) -> bool {
    match to {
        Destination::Gone | Destination::Hold(_) => true,
        Destination::Rest(place) => place.class == Class::DONE,
        Destination::Leased { .. } => false,
    }
}

/// A resting job, or a hold, is no longer counted where it was.
fn leave(counts: &mut Counts, class: Class) {
    if class.is_waiting() {
        counts.waiting = counts.waiting.saturating_sub(1);
    } else if class == Class::DEAD {
        counts.dead = counts.dead.saturating_sub(1);
    } else if class == Class::DONE {
        counts.done = counts.done.saturating_sub(1);
    }
}

fn count_move(
    counts: &mut Counts,
    left: Option<Place>,
    to: &Destination,
    progress: &Progress,
    cause: Cause,
) {
    match left {
        None => counts.leased = counts.leased.saturating_sub(1),
        Some(place) => leave(counts, place.class),
    }
    match to {
        Destination::Leased { .. } => counts.leased += 1,
        Destination::Rest(place) if place.class == Class::DEAD => {
            counts.dead += 1;
            // Death is counted once, also if the job loses its key later.
            counts.kills += u64::from(cause != Cause::KeyPassed);
        }
        Destination::Rest(place) if place.class == Class::DONE => counts.done += 1,
        Destination::Rest(_) => counts.waiting += 1,
        // It went to another topic when it died.
        Destination::Gone if cause.is_death() => counts.kills += 1,
        Destination::Hold(_) | Destination::Gone => {}
    }
    let was_done = left.is_some_and(|place| place.class == Class::DONE);
    if !was_done && is_gone(to) {
        counts.bytes = counts.bytes.saturating_sub(u64::from(progress.bytes));
    }
    match cause {
        Cause::Reserve => counts.reserves += 1,
        Cause::Ack => counts.acks += 1,
        Cause::Nack => counts.nacks += 1,
        Cause::Release => counts.releases += 1,
        Cause::Expiry => counts.expiries += 1,
        Cause::Cancel => counts.cancels += 1,
        Cause::Extend
        | Cause::Kill
        | Cause::Reschedule
        | Cause::Revive
        | Cause::Trim
        | Cause::TooLate
        | Cause::Park
        | Cause::KeyPassed => {}
    }
}
