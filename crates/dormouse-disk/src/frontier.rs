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

use dormouse_core::job::JobId;
use dormouse_core::place::{Class, Place};
use dormouse_core::snapshot_map::SnapshotMap;
use dormouse_core::topic::TopicNo;

use crate::journal::FrontierImage;
use crate::memtable::Key;

/// Steps of one lane, ages ascending, bounds descending.
type Steps = Vec<(u64, Key)>;

/// How far every lane is consumed.
#[derive(Debug, Default)]
pub(crate) struct Frontiers {
    lanes: SnapshotMap<(TopicNo, Class), Steps>,
    /// Topics of which sources up to this age are consumed whole.
    purged: SnapshotMap<TopicNo, u64>,
    /// No source is older than this.
    oldest: u64,
    forgetting: Option<Forgetting>,
}

/// Frontiers that no source needs are being forgotten.
#[derive(Debug)]
struct Forgetting {
    /// Where to go on in `purged` and in `lanes`; `None` = done.
    purged: Option<usize>,
    lanes: Option<usize>,
}

/// Entries that one portion of forgetting looks at. Each is a read of memory that is not in a
/// cache, and callers' turns do it, too: some ten microseconds.
const FORGET_PORTION: usize = 200;
/// A lane of more steps than this is looked through for those that no source needs.
const STEPS_MANY: usize = 4;

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
        let steps = self.lanes.get_or_insert_with((place.topic, place.class), Steps::new);
        while steps.last().is_some_and(|(_, lower)| *lower <= bound) {
            steps.pop();
        }
        if steps.last().is_none_or(|(upto, _)| *upto < newest) {
            if steps.len() >= STEPS_MANY {
                steps.retain(|(upto, _)| *upto >= self.oldest);
            }
            steps.push((newest, bound));
        }
    }

    /// Whether all of a topic is consumed in a source of this age.
    pub(crate) fn is_purged(&self, topic: TopicNo, age: u64) -> bool {
        self.purged.get(&topic).is_some_and(|upto| age <= *upto)
    }

    /// A topic was purged while `newest` was the age of the newest immutable source.
    pub(crate) fn purge(&mut self, topic: TopicNo, newest: u64) {
        self.purged.insert(topic, newest);
    }

    /// No source, present or to come, is older than this.
    pub(crate) fn set_oldest(&mut self, oldest: u64) {
        self.oldest = oldest;
    }

    /// Lanes and purges that no source needs are forgotten from now on, a portion at a time. A walk
    /// under way goes on: it would never reach its end if every checkpoint began it again.
    pub(crate) fn begin_to_forget(&mut self) {
        self.forgetting.get_or_insert(Forgetting { purged: Some(0), lanes: Some(0) });
    }

    /// Forgets a portion, if there is something to forget. A step that is needed no more may stay
    /// beside one that is: it says nothing of the sources there are.
    pub(crate) fn forget_portion(&mut self) {
        let Some(Forgetting { purged, lanes }) = &mut self.forgetting else { return };
        let oldest = &self.oldest;
        if let Some(from) = *purged {
            *purged = self.purged.retain_portion(from, FORGET_PORTION, |_, upto| *upto >= *oldest);
        } else if let Some(from) = *lanes {
            let is_needed = |steps: &Steps| steps.last().is_some_and(|(upto, _)| *upto >= *oldest);
            *lanes = self.lanes.retain_portion(from, FORGET_PORTION, |_, steps| is_needed(steps));
        } else {
            self.forgetting = None;
        }
    }

    /// The frontiers as they are now, for another thread.
    pub(crate) fn snapshot(&mut self) -> Frontiers {
        let (lanes, purged) = (self.lanes.snapshot(), self.purged.snapshot());
        Frontiers { lanes, purged, oldest: self.oldest, forgetting: None }
    }

    /// How many images there are at most.
    pub(crate) fn len(&self) -> usize {
        self.lanes.len() + self.purged.len()
    }

    /// The steps that sources need, in no order, for a checkpoint.
    pub(crate) fn images(&self) -> impl Iterator<Item = FrontierImage> {
        let oldest = self.oldest;
        let purged = self.purged.iter().filter(move |(_, upto)| **upto >= oldest);
        let purged = purged.map(|(topic, upto)| FrontierImage {
            topic: *topic,
            class: None,
            steps: vec![(*upto, 0, JobId(0))],
        });
        let lanes = self.lanes.iter().map(move |((topic, class), steps)| {
            let steps = steps.iter().filter(|(upto, _)| *upto >= oldest);
            FrontierImage {
                topic: *topic,
                class: Some(*class),
                steps: steps.map(|(upto, bound)| (*upto, bound.0, bound.1)).collect(),
            }
        });
        purged.chain(lanes.filter(|image| !image.steps.is_empty()))
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
        assert_eq!(frontiers.images().next().unwrap().steps.len(), 1);
    }

    #[test]
    fn purge_hides_what_is_old_enough() {
        let mut frontiers = Frontiers::default();
        frontiers.purge(TopicNo(1), 4);
        assert!(!frontiers.is_unread(&place(9), 4));
        assert!(frontiers.is_unread(&place(9), 5));
        frontiers.set_oldest(4);
        assert_eq!(frontiers.images().count(), 1);
        frontiers.set_oldest(5);
        assert_eq!(frontiers.images().count(), 0);
    }

    #[test]
    fn what_no_source_needs_is_forgotten_in_portions() {
        let mut frontiers = Frontiers::default();
        for topic in 1..=3_000 {
            frontiers.purge(TopicNo(topic), u64::from(topic % 2 + 1));
            frontiers.raise(&Place { topic: TopicNo(topic), ..place(9) }, u64::from(topic % 3));
        }
        // A lane that an older source and a younger one have steps of.
        frontiers.raise(&place(5), 3);
        frontiers.set_oldest(2);
        frontiers.begin_to_forget();
        let mut portions = 0;
        while frontiers.forgetting.is_some() {
            frontiers.forget_portion();
            portions += 1;
            assert!(!frontiers.is_unread(&Place { topic: TopicNo(3), ..place(9) }, 2));
        }
        assert!((30..60).contains(&portions), "{portions}");
        assert_eq!((frontiers.purged.len(), frontiers.lanes.len()), (1_500, 1_001));
        assert_eq!(frontiers.images().count(), 2_501);
        assert!(!frontiers.is_unread(&place(5), 3) && frontiers.is_unread(&place(6), 3));
    }
}
