//! Whether limits of groups hold a job, and what taking one spends.

use bytes::Bytes;

use super::Group;
use crate::error::{Error, Fatal};
use crate::machine::{Machine, Output};
use crate::op::HeldBy;
use crate::rate::{Pace, Rate};
use crate::refusal::held_by_group;
use crate::time::Now;
use crate::timeline::{Resting, Timeline};
use crate::topic::{Settings, TopicNo};

/// Rates are forgotten at multiples of this. Nobody waits for it, and a rate of a million jobs a
/// second would have an instant of its own for every job that is taken.
const FORGET_STEP_MS: u64 = 1_024;

/// Whether a topic limits its groups.
pub(super) fn limits_groups(settings: &Settings) -> bool {
    settings.group_leased_max.is_some() || settings.group_rate.is_some()
}

/// A limit that holds a group: which, how many of it are leased, and in how many ms there is room,
/// if time brings it.
pub(super) struct GroupHold {
    limit: HeldBy,
    leased: u64,
    pub(super) wait_ms: Option<u64>,
}

impl<T: Timeline> Machine<T> {
    /// The limit that keeps jobs of this group from being taken now.
    pub(super) fn group_hold(&self, topic: TopicNo, group: &Bytes, now: Now) -> Option<GroupHold> {
        let value = self.topics.get(topic)?;
        if !limits_groups(&value.settings) {
            return None;
        }
        let known = self.groups.known.get(&(topic, group.clone()));
        let leased = known.map_or(0, |known| known.leased);
        if value.settings.group_leased_max.is_some_and(|max| leased >= max) {
            return Some(GroupHold { limit: HeldBy::GroupLeasedMax, leased, wait_ms: None });
        }
        let rate = value.settings.group_rate?;
        let pace = self.group_pace(topic, known, rate);
        let wait_ms = pace.open_at(rate, now.steady_ms) - now.steady_ms;
        let wait_ms = Some(wait_ms).filter(|ms| *ms > 0);
        wait_ms.is_some().then_some(GroupHold { limit: HeldBy::GroupRate, leased, wait_ms })
    }

    fn group_pace(&self, topic: TopicNo, known: Option<&Group>, rate: Rate) -> Pace {
        match known.and_then(|known| known.pace) {
            Some((same, pace)) if same == rate => pace,
            Some((_, pace)) => pace.rounded_up(),
            None => {
                let from = self.topics.get(topic).and_then(|value| value.groups_paced_from);
                from.map_or_else(Pace::default, |from| Pace::empty(rate, from))
            }
        }
    }

    /// The limit of its group that keeps a job from being taken.
    pub(in crate::machine) fn held_by_its_group(
        &self,
        resting: &Resting,
        now: Now,
    ) -> Option<HeldBy> {
        let group = resting.job.content.group.as_ref()?;
        Some(self.group_hold(resting.place.topic, group, now)?.limit)
    }

    /// Refuses to take a given job that a limit of its group holds.
    pub(in crate::machine) fn check_group_flow(
        &self,
        resting: &Resting,
        now: Now,
    ) -> Result<(), Error> {
        let Some(group) = &resting.job.content.group else { return Ok(()) };
        match self.group_hold(resting.place.topic, group, now) {
            Some(GroupHold { limit, leased, wait_ms }) => {
                Err(held_by_group(group, limit, leased, wait_ms))
            }
            None => Ok(()),
        }
    }

    /// As `check_group_flow`, but a rate says nothing.
    pub(in crate::machine) fn check_group_slot(
        &self,
        resting: &Resting,
        now: Now,
    ) -> Result<(), Error> {
        let Some(group) = &resting.job.content.group else { return Ok(()) };
        match self.group_hold(resting.place.topic, group, now) {
            Some(GroupHold { limit: limit @ HeldBy::GroupLeasedMax, leased, .. }) => {
                Err(held_by_group(group, limit, leased, None))
            }
            _ => Ok(()),
        }
    }

    /// A job of this group was taken: it counts for the rate, and the next one may come.
    pub(in crate::machine) fn spend_of_group(
        &mut self,
        topic: TopicNo,
        group: &Bytes,
        now: Now,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        let key = (topic, group.clone());
        let rate = self.topics.get(topic).and_then(|value| value.settings.group_rate);
        if let Some(rate) = rate {
            let mut pace = self.group_pace(topic, self.groups.known.get(&key), rate);
            pace.take(rate, now.steady_ms);
            let known = self.groups.known.entry(key.clone()).or_default();
            known.pace = Some((rate, pace));
            if known.alarm_at.is_none() {
                self.groups.plan(&key, pace.forgotten_at().next_multiple_of(FORGET_STEP_MS));
            }
        }
        let has_lanes = self.groups.known.get(&key).is_some_and(|known| !known.lanes.is_empty());
        if has_lanes { self.look_at_group(&key, now, out) } else { Ok(()) }
    }
}
