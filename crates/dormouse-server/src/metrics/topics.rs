//! Figures of topics: of those shown, and of the others together.

use std::collections::HashMap;

use dormouse_core::image::Counts;
use dormouse_core::op::TopicStats;
use dormouse_core::topic::TopicName;

/// A counter's name, its help text, and its value.
pub(super) type Counter = (&'static str, &'static str, fn(&Counts) -> u64);

/// The counters of a topic.
pub(super) const COUNTERS: [Counter; 8] = [
    ("puts", "Jobs put", |counts| counts.puts),
    ("reserves", "Jobs handed out", |counts| counts.reserves),
    ("acks", "Jobs done", |counts| counts.acks),
    ("nacks", "Attempts that failed", |counts| counts.nacks),
    ("expiries", "Leases that ran out", |counts| counts.expiries),
    ("releases", "Leases given back unspent", |counts| counts.releases),
    ("dead", "Jobs that became dead", |counts| counts.kills),
    ("cancels", "Jobs cancelled", |counts| counts.cancels),
];

type TopicTotals = [u64; COUNTERS.len()];

fn totals(counts: &Counts) -> TopicTotals {
    COUNTERS.map(|(_, _, count)| count(counts))
}

/// The figures of the topics shown, and of all topics together.
#[derive(Debug)]
pub(super) struct TopicFigures {
    /// Topics with figures of their own, in the order of their names.
    pub(super) shown: Vec<(TopicName, TopicStats)>,
    /// The totals of all topics.
    pub(super) total: TopicStats,
    /// `shown` has every topic.
    pub(super) complete: bool,
    /// How long the job that waits longest in the other topics has been ready, as far as known.
    pub(super) hidden_oldest_ms: Option<u64>,
}

impl TopicFigures {
    /// Topics without series of their own.
    pub(super) fn hidden(&self) -> u64 {
        self.total.topics.saturating_sub(self.shown.len() as u64)
    }

    /// Jobs by state in the topics that are not shown.
    pub(super) fn rest(&self) -> TopicStats {
        let mut rest = self.total.clone();
        for (_, stats) in &self.shown {
            rest.delayed = rest.delayed.saturating_sub(stats.delayed);
            rest.ready = rest.ready.saturating_sub(stats.ready);
            let (counts, other) = (&mut rest.counts, &stats.counts);
            counts.waiting = counts.waiting.saturating_sub(other.waiting);
            counts.leased = counts.leased.saturating_sub(other.leased);
            counts.dead = counts.dead.saturating_sub(other.dead);
            counts.done = counts.done.saturating_sub(other.done);
            counts.bytes = counts.bytes.saturating_sub(other.bytes);
        }
        rest
    }
}

/// Jobs by state. In the totals of very many topics the backend does not split waiting jobs into
/// delayed and ready.
pub(super) fn states(stats: &TopicStats, is_split: bool) -> Vec<(&'static str, u64)> {
    let counts = &stats.counts;
    let mut states = vec![("leased", counts.leased), ("dead", counts.dead), ("done", counts.done)];
    if is_split {
        states.extend([("delayed", stats.delayed), ("ready", stats.ready)]);
    } else {
        states.push(("waiting", stats.counts.waiting));
    }
    states
}

/// Whether the totals split waiting jobs into delayed and ready.
pub(super) fn is_split_by_due(total: &TopicStats) -> bool {
    total.delayed + total.ready == total.counts.waiting
}

/// Counters of the topics that are not shown. Totals minus the topics shown would jump whenever a
/// topic is removed or is no longer shown, so only the growth between two pages is added.
#[derive(Default)]
pub(super) struct Others {
    before: Option<PreviousFigures>,
    /// May be less than `reported`: topics and totals are not read at the same instant.
    sum: [i128; COUNTERS.len()],
    reported: TopicTotals,
}

struct PreviousFigures {
    total: TopicTotals,
    shown: HashMap<TopicName, TopicTotals>,
    complete: bool,
}

impl Others {
    /// Adds the growth since the last call, and returns the counters of the topics that are not
    /// shown; `None` if there never were any.
    pub(super) fn update(&mut self, figures: &TopicFigures) -> Option<TopicTotals> {
        let total = totals(&figures.total.counts);
        let shown: HashMap<TopicName, TopicTotals> = figures
            .shown
            .iter()
            .map(|(name, stats)| (name.clone(), totals(&stats.counts)))
            .collect();
        if !figures.complete {
            for (index, reported) in self.reported.iter_mut().enumerate() {
                self.sum[index] += growth(self.before.as_ref(), &total, &shown, index);
                *reported = u64::try_from(self.sum[index]).unwrap_or(0).max(*reported);
            }
        }
        self.before = Some(PreviousFigures { total, shown, complete: figures.complete });
        let any = !figures.complete || self.reported.iter().any(|&reported| reported > 0);
        any.then_some(self.reported)
    }
}

/// The growth of one counter in all topics, less its growth in the topics shown.
fn growth(
    before: Option<&PreviousFigures>,
    total: &TopicTotals,
    shown: &HashMap<TopicName, TopicTotals>,
    index: usize,
) -> i128 {
    let grown = |now: u64, then: u64| {
        // Less than before: the topic was removed and created again.
        i128::from(now.checked_sub(then).unwrap_or(now))
    };
    let Some(before) = before else {
        let shown: i128 = shown.values().map(|totals| i128::from(totals[index])).sum();
        return (i128::from(total[index]) - shown).max(0);
    };
    let shown: i128 = shown
        .iter()
        .map(|(name, totals)| match before.shown.get(name) {
            Some(then) => grown(totals[index], then[index]),
            // A new topic; or one that was not shown before, and is counted among the others.
            None if before.complete => i128::from(totals[index]),
            None => 0,
        })
        .sum();
    i128::from(total[index]).saturating_sub(i128::from(before.total[index])) - shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(shown: &[(&str, u64)], total: u64, complete: bool) -> TopicFigures {
        let stats = |puts| TopicStats {
            counts: Counts { puts, ..Counts::default() },
            ..TopicStats::default()
        };
        let shown = shown.iter().map(|&(name, puts)| (TopicName::new(name).unwrap(), stats(puts)));
        TopicFigures {
            shown: shown.collect(),
            total: stats(total),
            complete,
            hidden_oldest_ms: None,
        }
    }

    fn check(others: &mut Others, figures: &TopicFigures, puts: Option<u64>) {
        assert_eq!(others.update(figures).map(|totals| totals[0]), puts);
    }

    #[test]
    fn there_are_no_others_if_all_topics_are_shown() {
        let mut others = Others::default();
        check(&mut others, &figures(&[("a", 5)], 7, true), None);
        check(&mut others, &figures(&[("a", 6)], 90, true), None);
    }

    #[test]
    fn a_topic_that_appears_or_vanishes_does_not_change_the_others() {
        let mut others = Others::default();
        check(&mut others, &figures(&[("a", 5), ("b", 10)], 40, false), Some(25));
        // `aa`, one of the others before, is shown instead of `b`; 3 puts to `a`.
        check(&mut others, &figures(&[("a", 8), ("aa", 7)], 43, false), Some(25));
        // 2 puts to `b`.
        check(&mut others, &figures(&[("a", 8), ("aa", 7)], 45, false), Some(27));
        // `a` was removed and created again by one put.
        check(&mut others, &figures(&[("a", 1), ("aa", 7)], 46, false), Some(27));
        // All topics are shown; the reported value stays.
        check(&mut others, &figures(&[("aa", 7)], 46, true), Some(27));
    }

    #[test]
    fn what_was_told_never_shrinks() {
        let mut others = Others::default();
        // 10 puts to `a` between reading it and reading the totals.
        check(&mut others, &figures(&[("a", 0)], 10, false), Some(10));
        check(&mut others, &figures(&[("a", 10)], 10, false), Some(10));
        check(&mut others, &figures(&[("a", 10)], 15, false), Some(10));
        check(&mut others, &figures(&[("a", 10)], 21, false), Some(11));
    }
}
