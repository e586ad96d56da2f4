//! One beat: all figures at one time.

use std::collections::HashMap;
use std::time::Duration;

use dormouse_core::image::Counts;
use dormouse_core::meter::Meter;
use dormouse_core::op::TopicStats;
use dormouse_core::topic::TopicName;

use super::Verdict;
use crate::metrics::{LatenessCounts, Stopwatch};

/// What happened to jobs, as far as it is counted for pulse and history: put, reserve, ack, nack,
/// dead.
pub(super) type Changes = [u64; 5];

pub(super) fn changes(counts: &Counts) -> Changes {
    [counts.puts, counts.reserves, counts.acks, counts.nacks, counts.kills]
}

/// The growth since an earlier look; a counter that is less than before began anew.
pub(super) fn growth(now: Changes, before: Changes) -> Changes {
    std::array::from_fn(|at| now[at].checked_sub(before[at]).unwrap_or(now[at]))
}

/// Changes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates(pub(crate) [f64; 5]);

impl Rates {
    pub(super) fn new(grown: Changes, within: Duration) -> Rates {
        let seconds = within.as_secs_f64().max(0.001);
        // Tenths are enough, and what is told is short.
        Rates(grown.map(|count| (count as f64 / seconds * 10.0).round() / 10.0))
    }
}

/// The figures of one topic.
#[derive(Clone, Debug)]
pub(crate) struct TopicBeat {
    pub(crate) stats: TopicStats,
    /// `None` if it was not looked at before.
    pub(crate) rates: Option<Rates>,
}

/// All figures.
#[derive(Debug)]
pub(crate) struct Beat {
    /// Ms since 1970.
    pub(crate) at: u64,
    /// The backend answers, even if only with `busy`.
    pub(crate) up: bool,
    /// `None` = the backend did not answer.
    pub(crate) all: Option<TopicStats>,
    pub(crate) rates: Option<Rates>,
    pub(crate) lateness: LatenessCounts,
    pub(crate) meters: Vec<Meter>,
    /// Those that somebody asked for, as far as they exist.
    pub(crate) topics: HashMap<TopicName, TopicBeat>,
    pub(crate) verdicts: Vec<Verdict>,
    /// The number of topics that the verdicts know.
    pub(crate) looked_at: usize,
    /// The number of readers that had come when it was begun.
    pub(super) serial: u64,
    pub(super) made: Stopwatch,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_per_second() {
        let grown = growth([30, 5, 0, 0, 0], [10, 5, 0, 0, 0]);
        assert_eq!(Rates::new(grown, Duration::from_secs(2)), Rates([10.0, 0.0, 0.0, 0.0, 0.0]));
        // A topic that was removed and created again.
        assert_eq!(growth([3, 0, 0, 0, 0], [10, 0, 0, 0, 0])[0], 3);
        let third = Rates::new([1, 0, 0, 0, 0], Duration::from_secs(3));
        assert_eq!(third.0[0], 0.3);
    }
}
