//! Limits of groups: jobs of a group without room are parked in lanes of their own, so that they
//! hold up nobody and are not met again and again.
//!
//! A group is known here while it has leases, parked jobs, or a rate that is not forgotten. Its
//! leases are counted where the table of leases changes, and from the table after a replay. The
//! jobs themselves are in the timeline; here is one entry per lane. Whenever a group has parked
//! jobs and room, one of them, its candidate, is back at its place, or the group is listed to be
//! looked at.

mod lanes;
mod learn;
mod limit;
mod park;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use self::lanes::{Lane, TopicLanes};
use crate::Map;
use crate::job::JobId;
use crate::place::Class;
use crate::rate::{Pace, Rate};
use crate::time::Clock;
use crate::topic::TopicNo;

/// A group of a topic.
type GroupKey = (TopicNo, Bytes);

/// What is known of a group.
#[derive(Debug, Default)]
struct Group {
    leased: u64,
    /// How far its rate is used, and which rate that was.
    pace: Option<(Rate, Pace)>,
    /// A job that was parked and is back at its place, and its priority.
    candidate: Option<(JobId, u32)>,
    /// How many purges its topic had seen when it became that.
    candidate_purges: u64,
    /// Where its jobs are parked, by their priority.
    lanes: BTreeSet<(u32, Class)>,
    is_listed: bool,
    alarm_at: Option<u64>,
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
    /// Topics whose groups have still to be listed.
    unlisted: BTreeSet<TopicNo>,
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

    /// Applies: what rested in a topic is gone. Its lanes are empty, and its candidates are gone:
    /// ticks find that out in portions. Until then a lane may get jobs again, as it is its group's.
    pub(super) fn purged(&mut self, topic: TopicNo) {
        self.unlearnt.remove(&topic);
        let Some(lanes) = self.lanes.get_mut(&topic) else { return };
        if lanes.is_empty() {
            self.unlisted.remove(&topic);
            self.lanes.remove(&topic);
            return;
        }
        lanes.unlearnt = None;
        lanes.purges += 1;
        lanes.unlist();
        self.unlisted.insert(topic);
    }

    /// Forgets the candidate of a group if a purge took it.
    fn drop_purged_candidate(&mut self, key: &GroupKey) {
        let purges = self.lanes.get(&key.0).map_or(0, |lanes| lanes.purges);
        if let Some(known) = self.known.get_mut(key)
            && known.candidate_purges != purges
            && let Some((id, _)) = known.candidate.take()
        {
            self.candidates.remove(&id);
        }
    }

    /// Makes a job, which is back at its place, the candidate of its group. One that it outranks
    /// stays in line.
    fn set_candidate(&mut self, key: &GroupKey, id: JobId, priority: u32) {
        let purges = self.lanes.get(&key.0).map_or(0, |lanes| lanes.purges);
        if let Some(known) = self.known.get_mut(key) {
            known.candidate_purges = purges;
            if let Some((outranked, _)) = known.candidate.replace((id, priority)) {
                self.candidates.remove(&outranked);
            }
            self.candidates.insert(id, key.clone());
        }
    }

    /// Applies: the settings of a topic changed. What was held may have room.
    pub(super) fn settings_changed(&mut self, topic: TopicNo) {
        if let Some(lanes) = self.lanes.get_mut(&topic) {
            lanes.unlist();
            self.unlisted.insert(topic);
        }
    }

    /// The wall clock was stepped: a candidate may be due no more, and its group needs another.
    pub(super) fn drop_candidates(&mut self) {
        let mut keys: Vec<_> = std::mem::take(&mut self.candidates).into_values().collect();
        keys.sort_unstable();
        for key in keys {
            if let Some(known) = self.known.get_mut(&key) {
                known.candidate = None;
            }
            self.list(key);
        }
    }

    /// The priority of the jobs in a parked lane, if that is known.
    pub(crate) fn priority_of(&self, topic: TopicNo, class: Class) -> Option<u32> {
        Some(self.lanes.get(&topic)?.get(class)?.priority)
    }

    /// When a tick has something to do here, steady.
    pub(super) fn next(&self) -> Option<u64> {
        if self.has_listed() {
            return Some(0);
        }
        self.alarms.first().map(|(at, _)| *at)
    }

    /// Whether there is something to look at before a job is taken.
    pub(crate) fn has_listed(&self) -> bool {
        !self.listed.is_empty() || !self.unlearnt.is_empty() || !self.unlisted.is_empty()
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
        // There is at most one for each clock.
        let of_priority = known.lanes.range((priority, Class::FIRST)..=(priority, Class::LAST));
        let mut fitting = of_priority.filter(|(_, class)| class.clock() == clock);
        if let Some(&(_, class)) = fitting.next() {
            return class;
        }
        let lane = Lane { group: key.1.clone(), priority };
        let class = self.lanes.entry(key.0).or_default().add(clock, lane);
        known.lanes.insert((priority, class));
        class
    }

    /// A lane is there, as a start found it.
    fn learn(&mut self, topic: TopicNo, class: Class, group: Bytes, priority: u32) {
        let lane = Lane { group: group.clone(), priority };
        self.lanes.entry(topic).or_default().insert(class, lane);
        let key = (topic, group);
        self.known.entry(key.clone()).or_default().lanes.insert((priority, class));
        self.list(key);
    }

    /// All lanes of a topic are known. Says whether there are any.
    fn end_learning(&mut self, topic: TopicNo) -> bool {
        self.unlearnt.remove(&topic);
        let Some(lanes) = self.lanes.get_mut(&topic) else { return false };
        lanes.unlearnt = None;
        let has_lanes = !lanes.is_empty();
        if !has_lanes {
            self.lanes.remove(&topic);
        }
        has_lanes
    }

    /// A lane is empty.
    fn drop_lane(&mut self, key: &GroupKey, priority: u32, class: Class) {
        if let Some(known) = self.known.get_mut(key) {
            known.lanes.remove(&(priority, class));
        }
        if let Some(lanes) = self.lanes.get_mut(&key.0) {
            lanes.remove(class);
            if lanes.is_empty() && lanes.unlearnt.is_none() {
                self.lanes.remove(&key.0);
            }
        }
    }
}
