//! The parked lanes of a topic, by number: whose jobs rest there.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::place::Class;
use crate::time::Clock;

/// A parked lane.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) group: Bytes,
    pub(super) priority: u32,
}

/// The parked lanes of a topic.
#[derive(Debug, Default)]
pub(super) struct TopicLanes {
    owners: BTreeMap<Class, Lane>,
    /// Numbers below the last one that nobody has any more. A start does not know all of them;
    /// those are used again when the lanes above them are gone.
    free: BTreeSet<u32>,
    /// After a start, classes from this one on have still to be learnt.
    pub(super) unlearnt: Option<Class>,
    /// After a change of settings, the groups of lanes from this one on have still to be listed.
    unlisted: Option<Class>,
    /// Purges of the topic since it has parked lanes.
    pub(super) purges: u64,
}

impl TopicLanes {
    pub(super) fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    pub(super) fn get(&self, class: Class) -> Option<&Lane> {
        self.owners.get(&class)
    }

    pub(super) fn insert(&mut self, class: Class, lane: Lane) {
        self.free.remove(&class.parked_lane());
        self.owners.insert(class, lane);
    }

    /// A lane of this clock that nobody has.
    pub(super) fn add(&mut self, clock: Clock, lane: Lane) -> Class {
        let behind = self.last().map_or(0, |last| last.saturating_add(1));
        let class = Class::parked(self.free.pop_first().unwrap_or(behind), clock);
        self.owners.insert(class, lane);
        class
    }

    pub(super) fn remove(&mut self, class: Class) {
        self.owners.remove(&class);
        self.free.insert(class.parked_lane());
        // Numbers behind the last one are free without being kept.
        let behind = self.last().map_or(0, |last| last.saturating_add(1));
        self.free.split_off(&behind);
    }

    fn last(&self) -> Option<u32> {
        self.owners.last_key_value().map(|(class, _)| class.parked_lane())
    }

    /// All groups have to be listed.
    pub(super) fn unlist(&mut self) {
        self.unlisted = Some(Class::PARKED);
    }

    /// The next group to be listed; `None` = all are.
    pub(super) fn next_unlisted(&mut self) -> Option<Bytes> {
        let from = self.unlisted?;
        let next = self.owners.range(from..).next();
        self.unlisted = next.map(|(class, _)| class.following());
        next.map(|(_, lane)| lane.group.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(lanes: &mut TopicLanes) -> u32 {
        let lane = Lane { group: Bytes::from_static(b"g"), priority: 0 };
        lanes.add(Clock::Steady, lane).parked_lane()
    }

    #[test]
    fn numbers_are_used_again_and_never_twice_at_once() {
        let mut lanes = TopicLanes::default();
        assert_eq!([add(&mut lanes), add(&mut lanes), add(&mut lanes)], [0, 1, 2]);
        lanes.remove(Class::parked(1, Clock::Steady));
        assert_eq!([add(&mut lanes), add(&mut lanes)], [1, 3]);
        (1..4).for_each(|lane| lanes.remove(Class::parked(lane, Clock::Steady)));
        assert_eq!([add(&mut lanes), add(&mut lanes)], [1, 2]);
    }

    #[test]
    fn lanes_that_a_start_found_are_passed_over() {
        let mut lanes = TopicLanes::default();
        let lane = Lane { group: Bytes::from_static(b"g"), priority: 0 };
        lanes.insert(Class::parked(5, Clock::Wall), lane);
        assert_eq!(add(&mut lanes), 6);
    }

    #[test]
    fn each_group_is_listed_once() {
        let mut lanes = TopicLanes::default();
        assert_eq!([add(&mut lanes), add(&mut lanes), add(&mut lanes)], [0, 1, 2]);
        assert!(lanes.next_unlisted().is_none());
        lanes.unlist();
        assert_eq!((0..9).filter(|_| lanes.next_unlisted().is_some()).count(), 3);
    }
}
