//! Figures of topics, asked from the backend in small portions.

use std::collections::HashMap;

use crate::limits::METRICS_TOPICS_MAX;
use dormouse_core::error::Error;
use dormouse_core::image::Counts;
use dormouse_core::op::{Stats, TopicStats, Topics};
use dormouse_core::topic::TopicName;

use super::OTHER;
use crate::client::BackendClient;

/// Topics asked for at once. The engine does nothing else meanwhile, and needs about 0.1 ms for a
/// topic that is spread over ten runs.
const PAGE: usize = 10;

/// What a counter is called, what it says, and where it stands.
pub(super) type CountOf = (&'static str, &'static str, fn(&Counts) -> u64);

/// What only grows.
pub(super) const COUNTERS: [CountOf; 8] = [
    ("puts", "Jobs put", |counts| counts.puts),
    ("reserves", "Jobs handed out", |counts| counts.reserves),
    ("acks", "Jobs done", |counts| counts.acks),
    ("nacks", "Attempts that failed", |counts| counts.nacks),
    ("expiries", "Leases that ran out", |counts| counts.expiries),
    ("releases", "Leases given back unspent", |counts| counts.releases),
    ("dead", "Jobs that became dead", |counts| counts.kills),
    ("cancels", "Jobs cancelled", |counts| counts.cancels),
];

type Tally = [u64; COUNTERS.len()];

fn tally(counts: &Counts) -> Tally {
    COUNTERS.map(|(_, _, count)| count(counts))
}

/// What the backend said about its topics.
#[derive(Debug)]
pub(super) struct Gathered {
    /// Topics with figures of their own, in the order of their names.
    pub(super) shown: Vec<(TopicName, TopicStats)>,
    /// All of them together.
    pub(super) total: TopicStats,
    /// No topic is left out.
    pub(super) complete: bool,
}

/// Asks the backend. Never looks at a job.
pub(super) async fn gather(client: &BackendClient) -> Result<Gathered, Error> {
    let mut shown: Vec<(TopicName, TopicStats)> = Vec::new();
    let mut complete = true;
    let mut after = None;
    loop {
        let limit = PAGE.min(METRICS_TOPICS_MAX - shown.len());
        if limit == 0 {
            complete = false;
            break;
        }
        let page = client.call(Topics { after, limit }).await?;
        after = page.topics.last().map(|(name, _)| name.clone());
        for (name, stats) in page.topics {
            // One that is called as the others are together would be there twice.
            let is_namesake = name.as_str() == OTHER;
            complete &= !is_namesake;
            if !is_namesake {
                shown.push((name, stats));
            }
        }
        if !page.more || after.is_none() {
            break;
        }
    }
    // After the topics: all together are never less than those shown.
    let total = client.call(Stats { topic: None }).await?;
    Ok(Gathered { shown, total, complete })
}

impl Gathered {
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
            counts.bytes = counts.bytes.saturating_sub(other.bytes);
        }
        rest
    }
}

/// Jobs by state. With very many topics the backend does not tell delayed from ready in the totals.
pub(super) fn states(stats: &TopicStats, told_apart: bool) -> Vec<(&'static str, u64)> {
    let mut states = vec![("leased", stats.counts.leased), ("dead", stats.counts.dead)];
    if told_apart {
        states.extend([("delayed", stats.delayed), ("ready", stats.ready)]);
    } else {
        states.push(("waiting", stats.counts.waiting));
    }
    states
}

/// Whether the totals tell delayed from ready.
pub(super) fn tells_apart(total: &TopicStats) -> bool {
    total.delayed + total.ready == total.counts.waiting
}

/// What happened in topics while they had no figures of their own. Totals minus those shown would
/// jump whenever a topic vanishes or loses its place, so only what is new is added up.
#[derive(Default)]
pub(super) struct Others {
    before: Option<Before>,
    /// May fall behind what was told: topics and totals are not asked at the same instant.
    sum: [i128; COUNTERS.len()],
    told: Tally,
}

struct Before {
    total: Tally,
    shown: HashMap<TopicName, Tally>,
    complete: bool,
}

impl Others {
    /// Takes note of what was gathered. The counters of the others; `None` = there were never any.
    pub(super) fn update(&mut self, gathered: &Gathered) -> Option<Tally> {
        let total = tally(&gathered.total.counts);
        let shown: HashMap<TopicName, Tally> = gathered
            .shown
            .iter()
            .map(|(name, stats)| (name.clone(), tally(&stats.counts)))
            .collect();
        if !gathered.complete {
            for (index, told) in self.told.iter_mut().enumerate() {
                self.sum[index] += news(self.before.as_ref(), &total, &shown, index);
                *told = u64::try_from(self.sum[index]).unwrap_or(0).max(*told);
            }
        }
        self.before = Some(Before { total, shown, complete: gathered.complete });
        let any = !gathered.complete || self.told.iter().any(|&told| told > 0);
        any.then_some(self.told)
    }
}

/// What one counter grew by since, less what those shown grew by.
fn news(
    before: Option<&Before>,
    total: &Tally,
    shown: &HashMap<TopicName, Tally>,
    index: usize,
) -> i128 {
    let grown = |now: u64, then: u64| {
        // Less than before: it vanished and began anew.
        i128::from(now.checked_sub(then).unwrap_or(now))
    };
    let Some(before) = before else {
        let shown: i128 = shown.values().map(|tally| i128::from(tally[index])).sum();
        return (i128::from(total[index]) - shown).max(0);
    };
    let shown: i128 = shown
        .iter()
        .map(|(name, tally)| match before.shown.get(name) {
            Some(then) => grown(tally[index], then[index]),
            // New among all topics, or one of the others until now, which has been told there.
            None if before.complete => i128::from(tally[index]),
            None => 0,
        })
        .sum();
    i128::from(total[index]).saturating_sub(i128::from(before.total[index])) - shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(shown: &[(&str, u64)], total: u64, complete: bool) -> Gathered {
        let stats = |puts| TopicStats {
            counts: Counts { puts, ..Counts::default() },
            ..TopicStats::default()
        };
        let shown = shown.iter().map(|&(name, puts)| (TopicName::new(name).unwrap(), stats(puts)));
        Gathered { shown: shown.collect(), total: stats(total), complete }
    }

    fn check(others: &mut Others, gathered: &Gathered, puts: Option<u64>) {
        assert_eq!(others.update(gathered).map(|tally| tally[0]), puts);
    }

    #[test]
    fn where_all_are_shown_there_are_no_others() {
        let mut others = Others::default();
        check(&mut others, &gathered(&[("a", 5)], 7, true), None);
        check(&mut others, &gathered(&[("a", 6)], 90, true), None);
    }

    #[test]
    fn a_topic_that_comes_or_goes_is_not_news_of_the_others() {
        let mut others = Others::default();
        check(&mut others, &gathered(&[("a", 5), ("b", 10)], 40, false), Some(25));
        // `b` lost its place to `aa`, which was one of the others; 3 puts happened to `a`.
        check(&mut others, &gathered(&[("a", 8), ("aa", 7)], 43, false), Some(25));
        // 2 puts to `b`.
        check(&mut others, &gathered(&[("a", 8), ("aa", 7)], 45, false), Some(27));
        // `a` vanished and came back with one put.
        check(&mut others, &gathered(&[("a", 1), ("aa", 7)], 46, false), Some(27));
        // None is left out any more, what was told stays.
        check(&mut others, &gathered(&[("aa", 7)], 46, true), Some(27));
    }

    #[test]
    fn what_was_told_never_shrinks() {
        let mut others = Others::default();
        // 10 puts to `a` came between asking for it and for the totals.
        check(&mut others, &gathered(&[("a", 0)], 10, false), Some(10));
        check(&mut others, &gathered(&[("a", 10)], 10, false), Some(10));
        check(&mut others, &gathered(&[("a", 10)], 15, false), Some(10));
        check(&mut others, &gathered(&[("a", 10)], 21, false), Some(11));
    }
}
