//! Parks jobs of groups without room, and brings one back when there is room.

use bytes::Bytes;

use super::GroupKey;
use super::lanes::TopicLanes;
use super::limit::{GroupHold, limits_groups};
use crate::error::Fatal;
use crate::fact::{Cause, Destination, Fact};
use crate::limits::{GROUP_LINE_MAX, GROUP_TICK_MAX};
use crate::machine::{Machine, Origin, Output};
use crate::place::{Class, Place};
use crate::time::Now;
use crate::timeline::{Head, Resting, Timeline};
use crate::topic::TopicNo;

/// Lanes of a group that one look at it asks, at most.
const LOOK_LANES: usize = 32;

impl<T: Timeline> Machine<T> {
    /// The class in which a ready job is put whose group has no room, or that comes to a long line:
    /// it need not be met first.
    pub(crate) fn class_of_put(
        &mut self,
        put: Place,
        group: Option<&Bytes>,
        now: Now,
    ) -> Result<Option<Class>, Fatal> {
        let Some(group) = group.filter(|_| put.is_due(now)) else { return Ok(None) };
        if self.group_hold(put.topic, group, now).is_none() && self.joins_line(put.topic) {
            return Ok(None);
        }
        if self.groups.is_learning(put.topic) {
            self.learn_lanes(&mut { GROUP_TICK_MAX })?;
        }
        if self.groups.is_learning(put.topic) {
            // It would get the lane of others.
            return Ok(None);
        }
        let key = (put.topic, group.clone());
        let class = self.groups.lane(&key, put.class.priority(), put.class.clock());
        // The rate's instant becomes its alarm.
        self.groups.list(key);
        Ok(Some(class))
    }

    /// Whether one more job of a group with room may stand in line; then it is counted.
    fn joins_line(&mut self, topic: TopicNo) -> bool {
        let Some(value) = self.topics.get_mut(topic) else { return true };
        if !limits_groups(&value.settings) {
            return true;
        }
        let has_room = value.grouped_line < GROUP_LINE_MAX;
        value.grouped_line += u64::from(has_room);
        has_room
    }

    /// Parks a job that was met although its group has no room; gives it back otherwise.
    pub(crate) fn park_if_held(
        &mut self,
        resting: Resting,
        now: Now,
        out: &mut Output,
    ) -> Option<Resting> {
        let Some(group) = &resting.job.content.group else { return Some(resting) };
        let left = resting.place;
        if self.group_hold(left.topic, group, now).is_none() {
            return Some(resting);
        }
        let key = (left.topic, group.clone());
        let class = self.groups.lane(&key, left.class.priority(), left.class.clock());
        self.move_for_group(resting, class, out);
        // The rate's instant becomes its alarm.
        self.groups.list(key);
        None
    }

    fn move_for_group(&mut self, resting: Resting, class: Class, out: &mut Output) {
        let left = resting.place;
        let fact = Fact::Move {
            id: left.id,
            topic: left.topic,
            left: Some(left),
            to: Destination::Rest(Place { class, ..left }),
            progress: resting.job.progress.clone(),
            key: None,
            cause: Cause::Park,
        };
        self.commit(fact, Origin::Taken(resting), out);
    }

    /// Looks at groups that may have room, and at those whose instant has come.
    pub(crate) fn look_at_groups(
        &mut self,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        let groups_max = (*budget).min(GROUP_TICK_MAX);
        let groups = &mut { groups_max };
        let looked = self.look_at_some(now, groups, out);
        *budget -= groups_max - *groups;
        looked
    }

    fn look_at_some(
        &mut self,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        self.learn_lanes(budget)?;
        self.list_groups(budget);
        while *budget > 0
            && let Some((at, key)) = self.groups.alarms.first()
            && *at <= now.steady_ms
        {
            *budget -= 1;
            let alarm = (*at, key.clone());
            self.groups.alarms.remove(&alarm);
            if let Some(known) = self.groups.known.get_mut(&alarm.1) {
                known.alarm_at = None;
            }
            self.groups.list(alarm.1);
        }
        // One that is listed again has to wait for the next tick.
        for _ in 0..self.groups.listed.len().min(*budget) {
            *budget -= 1;
            let Some(key) = self.groups.listed.pop_front() else { break };
            if let Some(known) = self.groups.known.get_mut(&key) {
                known.is_listed = false;
            }
            self.look_at_group(&key, now, out)?;
        }
        Ok(())
    }

    /// Lists the groups of topics whose settings changed.
    fn list_groups(&mut self, budget: &mut usize) {
        while *budget > 0
            && let Some(&topic) = self.groups.unlisted.first()
        {
            *budget -= 1;
            match self.groups.lanes.get_mut(&topic).and_then(TopicLanes::next_unlisted) {
                Some(group) => self.groups.list((topic, group)),
                None => drop(self.groups.unlisted.remove(&topic)),
            }
        }
    }

    /// Gives a group with room a candidate, or plans when to look again.
    pub(super) fn look_at_group(
        &mut self,
        key: &GroupKey,
        now: Now,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        let (topic, group) = key;
        self.groups.drop_purged_candidate(key);
        let Some(known) = self.groups.known.get(key) else { return Ok(()) };
        if known.lanes.is_empty() {
            self.retire_group(key, now);
            return Ok(());
        }
        // Only a more urgent job comes beside a candidate, so at most one of each priority.
        let below = known.candidate.map(|(_, priority)| priority);
        let outranks = |priority: u32| below.is_none_or(|below| priority < below);
        if known.lanes.first().is_some_and(|&(priority, _)| !outranks(priority)) {
            return Ok(());
        }
        if let Some(GroupHold { wait_ms, .. }) = self.group_hold(*topic, group, now) {
            if let Some(ms) = wait_ms {
                self.groups.plan(key, now.after(ms));
            }
            return Ok(());
        }
        let Some((priority, place)) = self.first_parked(key, now)? else { return Ok(()) };
        if !outranks(priority) {
            return Ok(());
        }
        let resting = self.timeline.take(place)?;
        let id = resting.job.id;
        self.move_for_group(resting, Class::waiting(priority, place.class.clock()), out);
        if !place.is_due(now) {
            // The wall clock was set back. It waits as others do, and is met again.
            self.groups.list(key.clone());
        } else {
            self.groups.set_candidate(key, id, priority);
        }
        Ok(())
    }

    /// The parked job of a group that is to be taken first, and its priority. Lanes that are empty
    /// go.
    fn first_parked(&mut self, key: &GroupKey, now: Now) -> Result<Option<(u32, Place)>, Fatal> {
        let mut first: Option<(u32, Place)> = None;
        let lanes: Vec<_> = match self.groups.known.get(key) {
            Some(known) => known.lanes.iter().take(LOOK_LANES).copied().collect(),
            None => return Ok(None),
        };
        for (priority, class) in lanes {
            if first.is_some_and(|(best, _)| best < priority) {
                break;
            }
            match self.timeline.oldest(key.0, class)? {
                Head::At(place) => {
                    let is_before = |best: Place| {
                        (place.overdue_ms(now), best.id) > (best.overdue_ms(now), place.id)
                    };
                    if first.is_none_or(|(_, best)| is_before(best)) {
                        first = Some((priority, place));
                    }
                }
                Head::Empty => self.groups.drop_lane(key, priority, class),
                Head::Again => {
                    self.groups.list(key.clone());
                    return Ok(None);
                }
            }
        }
        if first.is_none() {
            // All of these were empty: there may be others behind.
            self.groups.list(key.clone());
        }
        Ok(first)
    }

    /// Forgets a group of which nothing is to be remembered, or plans when.
    fn retire_group(&mut self, key: &GroupKey, now: Now) {
        let Some(known) = self.groups.known.get_mut(key) else { return };
        let forgotten_at = known.pace.map_or(0, |(_, pace)| pace.forgotten_at());
        if forgotten_at > now.steady_ms {
            self.groups.plan(key, forgotten_at);
            return;
        }
        known.pace = None;
        if known.leased == 0 && known.lanes.is_empty() && known.candidate.is_none() {
            self.groups.forget(key);
        }
    }
}
