//! Stretches of lanes in which no job rests any more, though the sources still have entries there:
//! jobs that were cancelled or moved, and their tombstones.
//!
//! A reading passes a bounded number of such entries. It notes where it began and how far it came,
//! so the next reading goes on from there. One gap per lane, the one that was read last.

use dormouse_core::Map;
use dormouse_core::place::{Class, Place};
use dormouse_core::topic::TopicNo;

use crate::memtable::Key;

/// Lanes whose gaps are kept; beyond it all are forgotten.
const LANES_MAX: usize = 1_024;
/// Shorter gaps are not worth a note.
const PASSED_MIN: usize = 64;

/// No job rests from `start` on until before `end`.
#[derive(Clone, Copy, Debug)]
struct Gap {
    start: Key,
    end: Key,
}

/// The known gaps.
#[derive(Debug, Default)]
pub(super) struct Gaps(Map<(TopicNo, Class), Gap>);

impl Gaps {
    /// Where a reading of a lane from this position on may begin.
    pub(super) fn skip(&self, topic: TopicNo, class: Class, from: Key) -> Key {
        match self.0.get(&(topic, class)) {
            Some(gap) if gap.start <= from && from < gap.end => gap.end,
            _ => from,
        }
    }

    /// A reading of a lane began at `from`, and passed this many entries up to `end` without a job.
    pub(super) fn note(&mut self, lane: (TopicNo, Class), from: Key, end: Key, passed: usize) {
        if passed < PASSED_MIN {
            return;
        }
        if self.0.len() >= LANES_MAX {
            self.0.clear();
        }
        let known = self.0.entry(lane).or_insert(Gap { start: from, end });
        if known.start <= from && from <= known.end {
            known.end = known.end.max(end);
        } else {
            *known = Gap { start: from, end };
        }
    }

    /// A job arrived.
    pub(super) fn arrived(&mut self, place: &Place) {
        if self.0.is_empty() {
            return;
        }
        let key = (place.due_at, place.id);
        if let Some(gap) = self.0.get_mut(&(place.topic, place.class))
            && gap.start <= key
        {
            gap.end = gap.end.min(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_core::job::JobId;

    use super::*;

    const LANE: (TopicNo, Class) = (TopicNo(1), Class::FIRST);

    fn key(due_at: u64) -> Key {
        (due_at, JobId(5))
    }

    fn check(gaps: &Gaps, from: u64, expected: u64) {
        assert_eq!(gaps.skip(LANE.0, LANE.1, key(from)), key(expected));
    }

    #[test]
    fn a_reading_goes_on_behind_the_gap() {
        let mut gaps = Gaps::default();
        gaps.note(LANE, key(10), key(20), PASSED_MIN - 1);
        check(&gaps, 10, 10);
        gaps.note(LANE, key(10), key(20), PASSED_MIN);
        for (from, expected) in [(9, 9), (10, 20), (15, 20), (20, 20), (21, 21)] {
            check(&gaps, from, expected);
        }
        gaps.note(LANE, key(20), key(30), PASSED_MIN);
        check(&gaps, 12, 30);
        gaps.note(LANE, key(50), key(60), PASSED_MIN);
        check(&gaps, 12, 12);
        check(&gaps, 55, 60);
    }

    #[test]
    fn an_arrival_ends_the_gap() {
        let mut gaps = Gaps::default();
        gaps.note(LANE, key(10), key(40), PASSED_MIN);
        let arrive = |gaps: &mut Gaps, due_at| {
            gaps.arrived(&Place { topic: LANE.0, class: LANE.1, due_at, id: JobId(5) });
        };
        arrive(&mut gaps, 9);
        arrive(&mut gaps, 40);
        check(&gaps, 10, 40);
        arrive(&mut gaps, 25);
        check(&gaps, 10, 25);
        check(&gaps, 26, 26);
        arrive(&mut gaps, 10);
        check(&gaps, 10, 10);
    }
}
