//! After a start: leases of groups are counted, and parked lanes are learnt from their heads.

use super::Groups;
use crate::error::Fatal;
use crate::machine::Machine;
use crate::place::Class;
use crate::timeline::{Head, Resting, Room, Timeline};

/// Lanes that are asked for at once.
const LEARN_PAGE: usize = 32;

impl<T: Timeline> Machine<T> {
    /// After a replay: counts leases anew, and plans to learn which lanes there are.
    pub(in crate::machine) fn begin_groups(&mut self) {
        self.groups = Groups::default();
        for (topic, group) in self.leases.groups() {
            self.groups.add_lease(topic, group);
        }
        for topic in self.topics.numbers() {
            if self.topics.get(topic).is_some_and(|value| value.has_parked) {
                self.groups.lanes.entry(topic).or_default().unlearnt = Some(Class::PARKED);
                self.groups.unlearnt.insert(topic);
            }
        }
    }

    /// Learns parked lanes from their heads.
    pub(super) fn learn_lanes(&mut self, budget: &mut usize) -> Result<(), Fatal> {
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
                        // The next tick goes on; those who wait have the rest of this one.
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
                let has_parked = self.groups.end_learning(topic);
                if let Some(value) = self.topics.get_mut(topic) {
                    value.has_parked = has_parked;
                    self.waiters.look_at(value.watch);
                }
            }
        }
        Ok(())
    }
}
