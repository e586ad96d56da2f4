//! The limits of a topic, read when a job is taken.
//!
//! What is used is what is leased: nothing is counted that could be forgotten. A topic without
//! limits is asked two fields that its pause was read beside.

use bytes::Bytes;

use super::topics::Topic;
use super::waiters::WatchNo;
use super::{Machine, Output};
use crate::error::{Error, Fatal};
use crate::op::HeldBy;
use crate::rate::Pace;
use crate::refusal::held_by_topic;
use crate::time::Now;
use crate::timeline::{Resting, Timeline};
use crate::topic::{Settings, TopicNo};

impl Topic {
    /// Takes over settings.
    pub(super) fn set(&mut self, settings: &Settings) {
        if settings.rate.is_none() {
            // A rate that is set later starts full.
            self.pace = Pace::default();
        } else if settings.rate != self.settings.rate {
            self.pace = self.pace.rounded_up();
        }
        if settings.group_rate.is_none() {
            self.groups_paced_from = None;
        }
        self.settings = settings.clone();
    }

    /// After a start: nobody knows what was taken before.
    pub(super) fn begin_pace(&mut self, now: Now) {
        if let Some(rate) = self.settings.rate {
            self.pace = Pace::empty(rate, now.steady_ms);
        }
        self.groups_paced_from = self.settings.group_rate.map(|_| now.steady_ms);
    }

    /// Whether no further job may be leased before another lease ends.
    fn is_without_slot(&self) -> bool {
        self.settings.leased_limit().is_some_and(|max| self.counts.leased >= max)
    }

    /// In how many ms the rate lets the next job be taken; `None` = now.
    fn rate_wait_ms(&self, now: Now) -> Option<u64> {
        let open_at = self.pace.open_at(self.settings.rate?, now.steady_ms);
        open_at.checked_sub(now.steady_ms).filter(|ms| *ms > 0)
    }

    /// How long a limit lets no job be taken; `Some(None)` = until a lease ends.
    pub(super) fn held(&self, now: Now) -> Option<Option<u64>> {
        if self.is_without_slot() { Some(None) } else { self.rate_wait_ms(now).map(Some) }
    }

    /// The limit that lets no job be taken now.
    fn held_by(&self, now: Now) -> Option<HeldBy> {
        let by_rate = |_| HeldBy::Rate;
        if self.is_without_slot() {
            Some(HeldBy::LeasedMax)
        } else {
            self.rate_wait_ms(now).map(by_rate)
        }
    }
}

impl<T: Timeline> Machine<T> {
    /// The limit that keeps a ready job from being taken.
    pub(super) fn held_by(&self, resting: &Resting, now: Now) -> Option<HeldBy> {
        let by_topic = self.topics.get(resting.place.topic)?.held_by(now);
        by_topic.or_else(|| self.held_by_its_group(resting, now))
    }

    /// Refuses to take a given job that limits hold.
    pub(crate) fn check_flow(&self, resting: &Resting, now: Now) -> Result<(), Error> {
        let Some(topic) = self.topics.get(resting.place.topic) else { return Ok(()) };
        match topic.held_by(now) {
            None => self.check_group_flow(resting, now),
            Some(limit) => {
                let (leased, wait_ms) = (topic.counts.leased, topic.held(now).flatten());
                Err(held_by_topic(&topic.name, limit, leased, wait_ms))
            }
        }
    }

    /// Refuses to go on with a lease that ran out while others have all slots. A rate says nothing
    /// about it: the job was taken before.
    pub(crate) fn check_slot(&self, resting: &Resting, now: Now) -> Result<(), Error> {
        match self.topics.get(resting.place.topic) {
            Some(topic) if topic.is_without_slot() => {
                Err(held_by_topic(&topic.name, HeldBy::LeasedMax, topic.counts.leased, None))
            }
            _ => self.check_group_slot(resting, now),
        }
    }

    /// A job was taken: it counts for the rate.
    pub(crate) fn spend(
        &mut self,
        topic: TopicNo,
        group: Option<&Bytes>,
        now: Now,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        if let Some(value) = self.topics.get_mut(topic) {
            if let Some(rate) = value.settings.rate {
                value.pace.take(rate, now.steady_ms);
            }
            value.grouped_line = value.grouped_line.saturating_sub(u64::from(group.is_some()));
        }
        group.map_or(Ok(()), |group| self.spend_of_group(topic, group, now, out))
    }

    /// The line of this topic has no due job.
    pub(crate) fn note_empty_line(&mut self, topic: TopicNo, now: Now) {
        // A topic without a slot looks empty, too.
        if let Some(value) = self.topics.get_mut(topic).filter(|value| value.held(now).is_none()) {
            value.grouped_line = 0;
        }
    }

    /// Applies: a job of this topic is parked.
    pub(super) fn note_parked(&mut self, topic: TopicNo) {
        if let Some(value) = self.topics.get_mut(topic) {
            value.has_parked = true;
        }
    }

    /// Applies: a lease of this topic ended. Who waits for its slot is served.
    pub(super) fn note_slot(&mut self, topic: TopicNo, watch: Option<WatchNo>) {
        let has_slots = |value: &Topic| value.settings.leased_limit().is_some();
        if watch.is_some() && self.topics.get(topic).is_some_and(has_slots) {
            self.waiters.look_at(watch);
        }
    }
}
