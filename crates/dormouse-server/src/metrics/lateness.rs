//! How late jobs are handed out, per topic.

use std::sync::{Arc, PoisonError, RwLock};

use crate::limits::METRICS_TOPICS_MAX;
use dormouse_core::Map;
use dormouse_core::op::LeasedJob;
use dormouse_core::topic::TopicName;

use super::OTHER;
use super::histogram::{Histogram, HistogramCounts};
use crate::units::wall_ms;

/// Upper ends in ms.
const BOUNDS_MS: &[u64] =
    &[1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 30_000, 300_000, 3_600_000];

/// A histogram for each topic that is shown, one for the others, and one for all.
#[derive(Default)]
pub(super) struct Lateness {
    topics: RwLock<Map<TopicName, Arc<Late>>>,
    others: Arc<Late>,
    all: Late,
}

/// A histogram, and when it began, in ms since 1970.
struct Late {
    histogram: Histogram,
    since: u64,
}

/// How late jobs were handed out, in ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LatenessCounts {
    /// Upper ends of the buckets, inclusive.
    pub(crate) bounds_ms: &'static [u64],
    /// One more than bounds: what was later than all of them.
    pub(crate) counts: Vec<u64>,
    pub(crate) sum_ms: u64,
    /// Ms since 1970; `None` = nothing is known.
    pub(crate) since: Option<u64>,
}

impl Default for Late {
    fn default() -> Late {
        Late { histogram: Histogram::new(BOUNDS_MS, 1_000), since: wall_ms() }
    }
}

impl Late {
    fn counts(&self) -> LatenessCounts {
        let (mut counts, sum_ms) = self.histogram.raw();
        counts.truncate(BOUNDS_MS.len() + 1);
        LatenessCounts { bounds_ms: BOUNDS_MS, counts, sum_ms, since: Some(self.since) }
    }
}

impl Lateness {
    /// Counts jobs that were handed out. Neighbours of one topic cost one lookup.
    pub(super) fn note(&self, jobs: &[LeasedJob]) {
        self.all.histogram.note(jobs.iter().map(|job| job.late_ms));
        for same in jobs.chunk_by(|one, next| one.topic == next.topic) {
            if let Some(first) = same.first() {
                self.of(&first.topic).histogram.note(same.iter().map(|job| job.late_ms));
            }
        }
    }

    fn of(&self, topic: &TopicName) -> Arc<Late> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = topics.get(topic) {
            return Arc::clone(found);
        }
        let full = topics.len() >= METRICS_TOPICS_MAX;
        drop(topics);
        if full || topic.as_str() == OTHER {
            return Arc::clone(&self.others);
        }
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        if topics.len() >= METRICS_TOPICS_MAX && !topics.contains_key(topic) {
            return Arc::clone(&self.others);
        }
        Arc::clone(topics.entry(topic.clone()).or_default())
    }

    /// If all histograms are taken, or there are more topics than those shown, frees the
    /// histograms of topics that are not shown. In the second case those shown get theirs: else
    /// whoever has many topics could take all.
    pub(super) fn keep_shown<'a>(
        &self,
        shown: impl Iterator<Item = &'a TopicName>,
        is_complete: bool,
    ) {
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        if is_complete && topics.len() < METRICS_TOPICS_MAX {
            return;
        }
        let mut before = std::mem::take(&mut *topics);
        for topic in shown.take(METRICS_TOPICS_MAX) {
            let kept = before.remove(topic);
            if let Some(late) = kept.or_else(|| (!is_complete).then(Arc::default)) {
                topics.insert(topic.clone(), late);
            }
        }
    }

    /// Of all topics together.
    pub(super) fn of_all(&self) -> LatenessCounts {
        self.all.counts()
    }

    /// Of one topic; nothing if it has no histogram of its own.
    pub(super) fn of_topic(&self, topic: &TopicName) -> LatenessCounts {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        let nothing = || LatenessCounts {
            bounds_ms: BOUNDS_MS,
            counts: vec![0; BOUNDS_MS.len() + 1],
            sum_ms: 0,
            since: None,
        };
        topics.get(topic).map_or_else(nothing, |late| late.counts())
    }

    /// All histograms in the order of the topics' names, the others last.
    pub(super) fn counts(&self) -> Vec<(String, HistogramCounts)> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        let sorted =
            topics.iter().map(|(topic, late)| (topic.to_string(), late.histogram.counts()));
        let mut sorted: Vec<(String, HistogramCounts)> =
            sorted.filter(|(_, counts)| counts.count > 0).collect();
        drop(topics);
        sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
        let others = self.others.histogram.counts();
        if others.count > 0 {
            sorted.push((OTHER.to_owned(), others));
        }
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(lateness: &Lateness, topic: &str) {
        lateness.of(&TopicName::new(topic).unwrap()).histogram.note([1].into_iter());
    }

    #[test]
    fn topics_beyond_the_limit_share_one() {
        let lateness = Lateness::default();
        note(&lateness, OTHER);
        for number in 0..METRICS_TOPICS_MAX + 5 {
            note(&lateness, &format!("t{number}"));
        }
        let topics = lateness.counts();
        assert_eq!(topics.len(), METRICS_TOPICS_MAX + 1);
        let (name, others) = topics.last().unwrap();
        assert_eq!((name.as_str(), others.count), (OTHER, 6));
    }

    #[test]
    fn histograms_of_vanished_topics_are_freed_when_all_are_taken() {
        let lateness = Lateness::default();
        note(&lateness, "t0");
        lateness.keep_shown(std::iter::empty(), true);
        assert_eq!(lateness.counts().len(), 1, "there is room still");
        for number in 1..METRICS_TOPICS_MAX {
            note(&lateness, &format!("t{number}"));
        }
        lateness.keep_shown([TopicName::new("t7").unwrap()].iter(), true);
        note(&lateness, "new");
        let names: Vec<String> = lateness.counts().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["new", "t7"]);
    }

    #[test]
    fn a_topic_that_is_shown_gets_its_histogram_before_others_take_all() {
        let lateness = Lateness::default();
        let shown: Vec<TopicName> = (0..METRICS_TOPICS_MAX)
            .map(|number| TopicName::new(&format!("shown{number}")).unwrap())
            .collect();
        lateness.keep_shown(shown.iter(), false);
        for number in 0..METRICS_TOPICS_MAX {
            note(&lateness, &format!("a{number}"));
        }
        note(&lateness, "shown7");
        let counts = lateness.counts();
        let names: Vec<&str> = counts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["shown7", OTHER]);
    }
}
