//! How far each lane is consumed, in one list per lane for all sources.
//!
//! Jobs of a lane leave in the order of their places over all sources, so when one is taken from
//! an immutable source, everything before it in *every* source that exists then is consumed. A
//! source is known by its age (a number that grows with each flush; a merge's output has the age
//! of its newest input). What was consumed while a source existed is therefore at least as much
//! for an older source as for a younger one, and a lane needs only a short stack of steps
//! `(age, bound)`: sources up to that age are consumed below that bound. Younger steps have lower
//! bounds. A merge changes no step: its output's bound is that of its newest input.
//!
//! Invariants: no unread entry of a source lies below its bound; no consumed one at or above it.

use dormouse_core::Map;
use dormouse_core::job::JobId;
use dormouse_core::place::{Class, Place};
use dormouse_core::topic::TopicNo;

use crate::journal::FrontierImage;
use crate::memtable::Key;

/// Steps of one lane, ages ascending, bounds descending.
type Steps = Vec<(u64, Key)>;

/// How far every lane is consumed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frontiers {
    lanes: Map<(TopicNo, Class), Steps>,
    /// Topics of which sources up to this age are consumed whole.
    purged: Map<TopicNo, u64>,
}

impl Frontiers {
    /// Where the unread part of a lane begins in a source; `None` = all of it is consumed.
    pub(crate) fn bound(&self, topic: TopicNo, class: Class, age: u64) -> Option<Key> {
        if !self.purged.is_empty() && self.purged.get(&topic).is_some_and(|upto| age <= *upto) {
            return None;
        }
        let Some(steps) = self.lanes.get(&(topic, class)) else { return Some((0, JobId(0))) };
        let step = steps.iter().find(|(upto, _)| age <= *upto);
        Some(step.map_or((0, JobId(0)), |(_, bound)| *bound))
    }

    /// Whether an entry of a source of this age is unread.
    pub(crate) fn is_unread(&self, place: &Place, age: u64) -> bool {
        self.bound(place.topic, place.class, age)
            .is_some_and(|bound| (place.due_at, place.id) >= bound)
    }

    /// A place was consumed while `newest` was the age of the newest immutable source.
    pub(crate) fn raise(&mut self, place: &Place, newest: u64) {
        // Ids are below 2^64 - 1: the next position always exists.
        let bound = (place.due_at, JobId(place.id.0.saturating_add(1)));
        let steps = self.lanes.entry((place.topic, place.class)).or_default();
        while steps.last().is_some_and(|(_, lower)| *lower <= bound) {
            steps.pop();
        }
        if steps.last().is_none_or(|(upto, _)| *upto < newest) {
            steps.push((newest, bound));
        }
    }

    /// A topic was purged while `newest` was the age of the newest immutable source.
    pub(crate) fn purge(&mut self, topic: TopicNo, newest: u64) {
        self.purged.insert(topic, newest);
    }

    /// Drops steps that no source is old enough to need.
    pub(crate) fn forget_before(&mut self, oldest: u64) {
        self.purged.retain(|_, upto| *upto >= oldest);
        self.lanes.retain(|_, steps| {
            steps.retain(|(upto, _)| *upto >= oldest);
            !steps.is_empty()
        });
    }

    /// The steps for a checkpoint, in the order of lanes.
    pub(crate) fn images(&self) -> Vec<FrontierImage> {
        let purged = self.purged.iter().map(|(topic, upto)| FrontierImage {
            topic: *topic,
            class: None,
            steps: vec![(*upto, 0, JobId(0))],
        });
        let lanes = self.lanes.iter().map(|((topic, class), steps)| FrontierImage {
            topic: *topic,
            class: Some(*class),
            steps: steps.iter().map(|(upto, bound)| (*upto, bound.0, bound.1)).collect(),
        });
        let mut images: Vec<FrontierImage> = purged.chain(lanes).collect();
        images.sort_unstable_by_key(|image| (image.topic, image.class));
        images
    }

    /// Restores the steps of a checkpoint.
    pub(crate) fn restore(&mut self, image: &FrontierImage) {
        match image.class {
            None => {
                let upto = image.steps.iter().map(|step| step.0).max().unwrap_or(0);
                self.purged.insert(image.topic, upto);
            }
            Some(class) => {
                let steps = image.steps.iter().map(|(upto, due_at, id)| (*upto, (*due_at, *id)));
                self.lanes.insert((image.topic, class), steps.collect());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dormouse_core::time::Clock;

    fn place(due_at: u64) -> Place {
        let class = Class::waiting(1, Clock::Steady);
        Place { topic: TopicNo(1), class, due_at, id: JobId(7) }
    }

    #[test]
    fn an_older_source_is_consumed_at_least_as_far() {
        let mut frontiers = Frontiers::default();
        frontiers.raise(&place(50), 1);
        frontiers.raise(&place(20), 2);
        assert!(!frontiers.is_unread(&place(50), 1));
        assert!(!frontiers.is_unread(&place(20), 2));
        assert!(frontiers.is_unread(&place(21), 2));
        assert!(frontiers.is_unread(&place(20), 3));
        frontiers.raise(&place(60), 3);
        assert!([1, 2, 3].iter().all(|age| !frontiers.is_unread(&place(60), *age)));
        assert_eq!(frontiers.images()[0].steps.len(), 1);
    }

    #[test]
    fn purge_hides_what_is_old_enough() {
        let mut frontiers = Frontiers::default();
        frontiers.purge(TopicNo(1), 4);
        assert!(!frontiers.is_unread(&place(9), 4));
        assert!(frontiers.is_unread(&place(9), 5));
        frontiers.forget_before(5);
        assert!(frontiers.images().is_empty());
    }
}
