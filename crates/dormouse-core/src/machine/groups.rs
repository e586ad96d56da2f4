//! Limits of groups: jobs of a group without room are parked in lanes of their own, so that they
//! hold up nobody and are not met again and again.
//!
//! A group is known here while it has leases, parked jobs, or a rate that is not forgotten. Its
//! leases are counted where the table of leases changes, and from the table after a replay. The
//! jobs themselves are in the timeline; here is one entry per lane. Whenever a group has parked
//! jobs and room, one of them, its candidate, is back at its place, or the group is listed to be
//! looked at.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::{Machine, Origin, Output};
use crate::Map;
use crate::error::{Error, Fatal};
use crate::fact::{Cause, Destination, Fact};
use crate::job::JobId;
use crate::op::HeldBy;
use crate::place::{Class, Place};
use crate::rate::{Pace, Rate};
use crate::refusal::held_by_group;
use crate::time::{Clock, Now};
use crate::timeline::{Head, Resting, Room, Timeline};
use crate::topic::{Settings, TopicNo};

/// Lanes that are asked for at once after a start.
const LEARN_PAGE: usize = 32;

/// A group of a topic.
type GroupKey = (TopicNo, Bytes);

/// What is known of a group.
#[derive(Debug, Default)]
struct Group {
    leased: u64,
    /// How far its rate is used, and which rate that was.
    pace: Option<(Rate, Pace)>,
    /// A job that was parked and is back at its place.
    candidate: Option<JobId>,
    /// Where its jobs are parked, by their priority.
    lanes: BTreeSet<(u32, Class)>,
    is_listed: bool,
    alarm_at: Option<u64>,
}

/// The parked lanes of a topic.
#[derive(Debug, Default)]
struct TopicLanes {
    /// Whose jobs rest there.
    owners: BTreeMap<Class, Bytes>,
    /// After a start, classes from this one on have still to be learnt.
    unlearnt: Option<Class>,
}

/// All groups that something is known of.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    known: Map<GroupKey, Group>,
    lanes: BTreeMap<TopicNo, TopicLanes>,
    candidates: Map<JobId, GroupKey>,
    /// Groups to be looked at: they may have room now.
    listed: VecDeque<GroupKey>,
    /// When a rate has room, or is forgotten.
    alarms: BTreeSet<(u64, GroupKey)>,
    /// Topics whose lanes have still to be learnt.
    unlearnt: BTreeSet<TopicNo>,
}

impl Groups {
    /// Applies: a job of this group is leased.
    pub(super) fn add_lease(&mut self, topic: TopicNo, group: &Bytes) {
        self.known.entry((topic, group.clone())).or_default().leased += 1;
    }

    /// Applies: a lease of this group ended.
    pub(super) fn drop_lease(&mut self, topic: TopicNo, group: &Bytes) {
        let key = (topic, group.clone());
        let Some(known) = self.known.get_mut(&key) else { return };
        known.leased = known.leased.saturating_sub(1);
        if !known.lanes.is_empty() {
            self.list(key);
        } else if known.leased == 0 && known.pace.is_none() && known.candidate.is_none() {
            self.forget(&key);
        }
    }

    /// Applies: a job left its place. If it was a candidate, its group needs another.
    pub(super) fn job_left(&mut self, id: JobId) {
        if self.candidates.is_empty() {
            return;
        }
        let Some(key) = self.candidates.remove(&id) else { return };
        if let Some(known) = self.known.get_mut(&key) {
            known.candidate = None;
        }
        self.list(key);
    }

    /// Applies: what rested in a topic is gone.
    pub(super) fn purged(&mut self, topic: TopicNo) {
        self.unlearnt.remove(&topic);
        let Some(lanes) = self.lanes.remove(&topic) else { return };
        for group in lanes.owners.into_values() {
            let key = (topic, group);
            if let Some(known) = self.known.get_mut(&key) {
                known.lanes.clear();
                let candidate = known.candidate.take();
                candidate.map(|id| self.candidates.remove(&id));
            }
            self.list(key);
        }
    }

    /// Applies: the settings of a topic changed. What was held may have room.
    pub(super) fn settings_changed(&mut self, topic: TopicNo) {
        let owners = self.lanes.get(&topic).map(|lanes| lanes.owners.values().cloned());
        let keys: Vec<_> = owners.into_iter().flatten().map(|group| (topic, group)).collect();
        keys.into_iter().for_each(|key| self.list(key));
    }

    /// When a tick has something to do here, steady.
    pub(super) fn next(&self) -> Option<u64> {
        if !self.listed.is_empty() || !self.unlearnt.is_empty() {
            return Some(0);
        }
        self.alarms.first().map(|(at, _)| *at)
    }

    /// Whether there is something to look at before a job is taken.
    pub(crate) fn has_listed(&self) -> bool {
        !self.listed.is_empty() || !self.unlearnt.is_empty()
    }

    /// Whether the parked lanes of a topic have still to be learnt.
    pub(super) fn is_learning(&self, topic: TopicNo) -> bool {
        !self.unlearnt.is_empty() && self.unlearnt.contains(&topic)
    }

    fn list(&mut self, key: GroupKey) {
        if let Some(known) = self.known.get_mut(&key)
            && !known.is_listed
        {
            known.is_listed = true;
            self.listed.push_back(key);
        }
    }

    fn forget(&mut self, key: &GroupKey) {
        if let Some(known) = self.known.remove(key)
            && let Some(at) = known.alarm_at
        {
            self.alarms.remove(&(at, key.clone()));
        }
    }

    fn plan(&mut self, key: &GroupKey, at: u64) {
        let Some(known) = self.known.get_mut(key) else { return };
        if let Some(before) = known.alarm_at.replace(at) {
            self.alarms.remove(&(before, key.clone()));
        }
        self.alarms.insert((at, key.clone()));
    }

    /// The lane in which jobs of this group, priority and clock are parked, new if need be.
    fn lane(&mut self, key: &GroupKey, priority: u32, clock: Clock) -> Class {
        let known = self.known.entry(key.clone()).or_default();
        let of_priority = known.lanes.range((priority, Class::FIRST)..=(priority, Class::LAST));
        let mut fitting = of_priority.filter(|(_, class)| class.clock() == clock);
        if let Some(&(_, class)) = fitting.next() {
            return class;
        }
        let lanes = self.lanes.entry(key.0).or_default();
        let class = free_lane(&lanes.owners, clock);
        lanes.owners.insert(class, key.1.clone());
        known.lanes.insert((priority, class));
        class
    }

    /// A lane is there, as a start found it.
    fn learn(&mut self, topic: TopicNo, class: Class, group: Bytes, priority: u32) {
        self.lanes.entry(topic).or_default().owners.insert(class, group.clone());
        let key = (topic, group);
        self.known.entry(key.clone()).or_default().lanes.insert((priority, class));
        self.list(key);
    }

    /// A lane is empty.
    fn drop_lane(&mut self, key: &GroupKey, priority: u32, class: Class) {
        if let Some(known) = self.known.get_mut(key) {
            known.lanes.remove(&(priority, class));
        }
        if let Some(lanes) = self.lanes.get_mut(&key.0) {
            lanes.owners.remove(&class);
            if lanes.owners.is_empty() {
                self.lanes.remove(&key.0);
            }
        }
    }
}

/// The first lane of this clock that nobody has.
fn free_lane(owners: &BTreeMap<Class, Bytes>, clock: Clock) -> Class {
    // Numbers come back, so the first gap is mostly at the end or where the last lane was dropped.
    let last = owners.last_key_value().map_or(0, |(class, _)| class.parked_lane() + 1);
    let dense = u32::try_from(owners.len()).unwrap_or(u32::MAX) >= last;
    let candidates = if dense { last..=last } else { 0..=last };
    let is_free = |lane: &u32| {
        !owners.contains_key(&Class::parked(*lane, Clock::Steady))
            && !owners.contains_key(&Class::parked(*lane, Clock::Wall))
    };
    Class::parked(candidates.into_iter().find(is_free).unwrap_or(last), clock)
}

/// Whether a topic limits its groups.
fn limits_groups(settings: &Settings) -> bool {
    settings.group_leased_max.is_some() || settings.group_rate.is_some()
}

/// A limit that holds a group: which, how many of it are leased, and in how many ms there is room,
/// if time brings it.
struct GroupHold {
    limit: HeldBy,
    leased: u64,
    wait_ms: Option<u64>,
}

impl<T: Timeline> Machine<T> {
    /// The limit that keeps jobs of this group from being taken now.
    fn group_hold(&self, topic: TopicNo, group: &Bytes, now: Now) -> Option<GroupHold> {
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
    pub(super) fn held_by_its_group(&self, resting: &Resting, now: Now) -> Option<HeldBy> {
        let group = resting.job.content.group.as_ref()?;
        Some(self.group_hold(resting.place.topic, group, now)?.limit)
    }

    /// Refuses to take a given job that a limit of its group holds.
    pub(super) fn check_group_flow(&self, resting: &Resting, now: Now) -> Result<(), Error> {
        let Some(group) = &resting.job.content.group else { return Ok(()) };
        match self.group_hold(resting.place.topic, group, now) {
            Some(GroupHold { limit, leased, wait_ms }) => {
                Err(held_by_group(group, limit, leased, wait_ms))
            }
            None => Ok(()),
        }
    }

    /// As `check_group_flow`, but a rate says nothing.
    pub(super) fn check_group_slot(&self, resting: &Resting, now: Now) -> Result<(), Error> {
        let Some(group) = &resting.job.content.group else { return Ok(()) };
        match self.group_hold(resting.place.topic, group, now) {
            Some(GroupHold { limit: limit @ HeldBy::GroupLeasedMax, leased, .. }) => {
                Err(held_by_group(group, limit, leased, None))
            }
            _ => Ok(()),
        }
    }

    /// A job of this group was taken: it counts for the rate, and the next one may come.
    pub(super) fn spend_of_group(
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
                self.groups.plan(&key, pace.forgotten_at());
            }
        }
        let has_lanes = self.groups.known.get(&key).is_some_and(|known| !known.lanes.is_empty());
        if has_lanes { self.look_at_group(&key, now, out) } else { Ok(()) }
    }

    /// The class in which a ready job is put: with the parked ones if its group has such and no
    /// room.
    pub(crate) fn class_of_put(
        &self,
        put: Place,
        group: Option<&Bytes>,
        now: Now,
    ) -> Option<Class> {
        let group = group.filter(|_| put.is_due(now))?;
        let known = self.groups.known.get(&(put.topic, group.clone()))?;
        let (priority, clock) = (put.class.priority(), put.class.clock());
        let is_fitting = |lane: &&(u32, Class)| lane.0 == priority && lane.1.clock() == clock;
        let &(_, class) = known.lanes.iter().find(is_fitting)?;
        self.group_hold(put.topic, group, now).map(|_| class)
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
        self.learn_lanes(budget)?;
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

    /// Gives a group with room a candidate, or plans when to look again.
    fn look_at_group(&mut self, key: &GroupKey, now: Now, out: &mut Output) -> Result<(), Fatal> {
        let (topic, group) = key;
        let Some(known) = self.groups.known.get(key) else { return Ok(()) };
        if known.lanes.is_empty() {
            self.retire_group(key, now);
            return Ok(());
        }
        if known.candidate.is_some() {
            return Ok(());
        }
        if let Some(GroupHold { wait_ms, .. }) = self.group_hold(*topic, group, now) {
            if let Some(ms) = wait_ms {
                self.groups.plan(key, now.after(ms));
            }
            return Ok(());
        }
        let Some((priority, place)) = self.first_parked(key, now)? else { return Ok(()) };
        let resting = self.timeline.take(place)?;
        let id = resting.job.id;
        self.move_for_group(resting, Class::waiting(priority, place.class.clock()), out);
        if let Some(known) = self.groups.known.get_mut(key) {
            known.candidate = Some(id);
            self.groups.candidates.insert(id, key.clone());
        }
        Ok(())
    }

    /// The parked job of a group that is to be taken first, and its priority. Lanes that are empty
    /// go.
    fn first_parked(&mut self, key: &GroupKey, now: Now) -> Result<Option<(u32, Place)>, Fatal> {
        let mut first: Option<(u32, Place)> = None;
        let lanes: Vec<_> = match self.groups.known.get(key) {
            Some(known) => known.lanes.iter().copied().collect(),
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
            self.retire_group(key, now);
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

    /// After a replay: counts leases anew, and plans to learn which lanes there are.
    pub(super) fn begin_groups(&mut self) {
        self.groups = Groups::default();
        for id in self.leases.ids() {
            if let Some(lease) = self.leases.get(id)
                && let Some(group) = lease.job.group()
            {
                self.groups.add_lease(lease.topic, group);
            }
        }
        for topic in self.topics.numbers() {
            if self.topics.get(topic).is_some_and(|value| value.has_parked) {
                self.groups.lanes.entry(topic).or_default().unlearnt = Some(Class::PARKED);
                self.groups.unlearnt.insert(topic);
            }
        }
    }

    /// Learns parked lanes from their heads.
    fn learn_lanes(&mut self, budget: &mut usize) -> Result<(), Fatal> {
        while *budget > 0
            && let Some(&topic) = self.groups.unlearnt.first()
        {
            let from = self.groups.lanes.get(&topic).and_then(|lanes| lanes.unlearnt);
            let from = from.unwrap_or(Class::PARKED);
            let classes = self.timeline.classes(topic, from, LEARN_PAGE)?;
            let is_last = classes.len() < LEARN_PAGE;
            for class in classes {
                *budget = budget.saturating_sub(1);
                let place = match self.timeline.oldest(topic, class)? {
                    Head::At(place) => place,
                    Head::Empty => continue,
                    Head::Again => {
                        self.groups.lanes.entry(topic).or_default().unlearnt = Some(class);
                        *budget = 0;
                        return Ok(());
                    }
                };
                let from = (place.due_at, place.id);
                let mut head = self.timeline.page(topic, class, from, Room::jobs(1))?.jobs;
                if let Some(Resting { job, .. }) = head.pop() {
                    let group = job.content.group.unwrap_or_default();
                    self.groups.learn(topic, class, group, job.progress.priority);
                }
                self.groups.lanes.entry(topic).or_default().unlearnt = Some(class.following());
            }
            if is_last {
                self.groups.unlearnt.remove(&topic);
                let has_parked =
                    self.groups.lanes.get(&topic).is_some_and(|lanes| !lanes.owners.is_empty());
                if let Some(value) = self.topics.get_mut(topic) {
                    value.has_parked = has_parked;
                    self.waiters.look_at(value.watch);
                }
            }
        }
        Ok(())
    }
}
