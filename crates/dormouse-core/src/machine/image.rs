//! Pieces for a checkpoint, and the way back from them.

use super::alarms::TopicAlarms;
use super::topics::Topic;
use super::{Lease, Machine, Output};
use crate::error::Fatal;
use crate::fact::{Cause, Destination};
use crate::image::{LeaseImage, LockImage, MachineImage, TopicImage};
use crate::job::{Content, JobId};
use crate::place::{Class, Place};
use crate::time::{Clock, Now};
use crate::timeline::Timeline;

impl<T: Timeline> Machine<T> {
    /// The machine's numbers.
    pub fn machine_image(&self) -> MachineImage {
        MachineImage {
            next_id: self.next_id,
            next_topic: self.topics.next_no,
            epoch: self.epoch,
            gone: self.topics.gone,
        }
    }

    /// All topics, by number.
    pub fn topic_images(&self) -> impl Iterator<Item = TopicImage> {
        self.topics
            .numbers()
            .into_iter()
            .filter_map(|topic| Some(self.topics.get(topic)?.image(topic)))
    }

    /// All leased jobs, by id.
    pub fn lease_images(&self) -> impl Iterator<Item = LeaseImage> {
        self.leases.ids().into_iter().filter_map(|id| Some(self.leases.get(id)?.image(id)))
    }

    /// All locks held, by name.
    pub fn lock_images(&self) -> impl Iterator<Item = LockImage> {
        self.locks.names().into_iter().filter_map(|name| Some(self.locks.get(&name)?.image(&name)))
    }

    /// Takes the numbers of a checkpoint over. First of all, into an empty machine.
    pub fn restore_machine(&mut self, image: MachineImage) {
        self.next_id = self.next_id.max(image.next_id);
        self.topics.next_no = self.topics.next_no.max(image.next_topic);
        self.topics.gone = image.gone;
        self.totals.add(&image.gone);
        self.set_epoch(image.epoch);
    }

    /// Takes a topic of a checkpoint over. Before its leases.
    pub fn restore_topic(&mut self, image: TopicImage) {
        self.totals.add(&image.counts);
        let mut value = Topic::new(image.name);
        value.settings = image.settings;
        value.pause = image.pause;
        value.holds_until = image.holds_until;
        value.counts = image.counts;
        value.schedules = image.schedules;
        value.has_deadlines = image.has_deadlines;
        value.has_parked = image.has_parked;
        self.schedules.count += image.schedules;
        self.topics.insert(image.topic, value);
    }

    /// Takes a leased job of a checkpoint over; its topic's counts know it already.
    pub fn restore_lease(&mut self, image: LeaseImage) {
        self.note_fence(image.job.progress.fence);
        let LeaseImage { topic, job, ttr_ms, session } = image;
        self.insert_lease(job.id, Lease::new(topic, job, 0, ttr_ms, session));
    }

    /// Takes a lock of a checkpoint over.
    pub fn restore_lock(&mut self, image: LockImage) {
        self.note_fence(image.fence);
        let LockImage { name, owner, fence, depth, ttl_ms } = image;
        self.locks.hold(&name, &owner, fence, depth, ttl_ms);
    }

    /// The leased jobs of which a replay knew only the id.
    pub fn leased_stubs(&self) -> Vec<JobId> {
        self.leases.stubs()
    }

    /// Completes a leased job of which a replay knew only the id.
    pub fn complete_leased(&mut self, id: JobId, content: Content) {
        self.leases.complete(id, content);
    }

    /// The replay is over: leases and locks last their full time from now, those of sessions are
    /// released, and topics nothing speaks for vanish.
    pub fn recovered(&mut self, now: Now, out: &mut Output) -> Result<(), Fatal> {
        // Before leases end.
        self.begin_groups();
        for id in self.leases.begin_all(now) {
            let Some(lease) = self.leases.get(id) else { continue };
            let (topic, mut progress) = (lease.topic, lease.job.progress());
            progress.give_back();
            let class = Class::waiting(progress.priority, Clock::Steady);
            let place = Place { topic, class, due_at: now.steady_ms, id };
            self.end_lease(topic, id, Destination::Rest(place), progress, Cause::Release, out);
        }
        for name in self.locks.names() {
            let ttl_ms = self.locks.get(&name).map_or(0, |lock| lock.ttl_ms);
            self.locks.set_expiry(&name, now.after(ttl_ms));
        }
        // Plans made during the replay may be obsolete.
        self.topics.clear_idle();
        self.hold_alarms = TopicAlarms::default();
        self.schedules.recovered();
        for topic in self.topics.numbers() {
            self.plan_trim(topic);
            self.review_schedules(topic);
            if self.topics.get(topic).is_some_and(|value| value.has_deadlines) {
                self.deadlines.line.plan(topic, 0);
            }
            if self.topics.get(topic).is_some_and(|value| value.holds_until > 0) {
                self.hold_alarms.plan(topic, 0);
            }
            self.topics.get_mut(topic).into_iter().for_each(|value| value.begin_pace(now));
            self.vanish_if_unused(topic, now, out);
        }
        // Leases of sessions came to rest: their deadlines belong to the batch of the start.
        self.move_deadlines(now, out);
        Ok(())
    }
}
