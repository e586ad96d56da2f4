//! Topics that may have something wrong, found by a walk over all names.
//!
//! There may be millions of topics, so a beat looks at some of them and the next one goes on. Those
//! that look bad are looked at in every beat, until they recover or others are worse.

use std::collections::HashMap;

use dormouse_core::error::Error;
use dormouse_core::op::{TopicStats, Topics};
use dormouse_core::topic::TopicName;

use super::verdict::judge;
use super::{PORTION, Verdict};
use crate::client::BackendClient;
use crate::limits::{PULSE_VERDICTS_MAX, PULSE_WALK_MS_MAX, PULSE_WALK_TOPICS_MAX};
use crate::metrics::Stopwatch;

/// Twice as many as are told, so that a topic which recovers has a successor, and a reader who may
/// not see some of them is told of others.
const KEPT_MAX: usize = 2 * PULSE_VERDICTS_MAX;

/// The walk, and what it has found.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Where the present round has come to; `None` = it begins.
    after: Option<TopicName>,
    /// Topics of the present round, and of the whole round before it.
    walked: usize,
    round: usize,
    kept: HashMap<TopicName, Candidate>,
}

/// A topic that looks bad.
#[derive(Clone, Debug)]
struct Candidate {
    stats: TopicStats,
    /// Jobs taken ever, at the look before; `None` = this is the first.
    reserves_before: Option<u64>,
}

impl Candidates {
    /// The topics that the verdicts know.
    pub(super) fn looked_at(&self) -> usize {
        self.round.max(self.walked)
    }

    /// Goes on with the walk for a while, and looks at the candidates again.
    pub(super) async fn look(&mut self, client: &BackendClient) -> Result<Vec<Verdict>, Error> {
        let known: Vec<TopicName> = self.kept.keys().cloned().collect();
        let mut seen = Vec::new();
        for names in known.chunks(PORTION) {
            seen.extend(client.stats_of(names).await?);
        }
        self.kept.retain(|name, _| seen.iter().any(|(found, _)| found == name));
        for (name, stats) in seen {
            self.note(name, stats);
        }
        self.walk(client).await?;
        Ok(self.verdicts())
    }

    async fn walk(&mut self, client: &BackendClient) -> Result<(), Error> {
        let begun = Stopwatch::start();
        let mut walked = 0;
        loop {
            let after = self.after.clone();
            let page = client.call(Topics { after, limit: PORTION }).await?;
            walked += page.topics.len();
            self.walked += page.topics.len();
            self.after = page.topics.last().map(|(name, _)| name.clone());
            for (name, stats) in page.topics {
                if !self.kept.contains_key(&name) {
                    self.note(name, stats);
                }
            }
            if !page.more || self.after.is_none() {
                (self.round, self.walked, self.after) = (self.walked, 0, None);
                return Ok(());
            }
            let is_late = begun.elapsed().as_millis() >= u128::from(PULSE_WALK_MS_MAX);
            if is_late || walked >= PULSE_WALK_TOPICS_MAX {
                return Ok(());
            }
        }
    }

    /// Keeps a topic with ready jobs if it is among the worst, forgets one without.
    fn note(&mut self, name: TopicName, stats: TopicStats) {
        let before = self.kept.remove(&name);
        if stats.ready == 0 {
            return;
        }
        let reserves_before = before.map(|before| before.stats.counts.reserves);
        let candidate = Candidate { stats, reserves_before };
        if self.kept.len() >= KEPT_MAX {
            let least = self.kept.iter().min_by_key(|(_, kept)| kept.rank());
            match least.filter(|(_, least)| least.rank() < candidate.rank()) {
                Some((least, _)) => {
                    let least = least.clone();
                    self.kept.remove(&least);
                }
                None => return,
            }
        }
        self.kept.insert(name, candidate);
    }

    /// What is wrong, the longest first.
    fn verdicts(&self) -> Vec<Verdict> {
        let judged = self.kept.iter().filter_map(|(name, candidate)| {
            let reserves = candidate.stats.counts.reserves;
            let taken = candidate.reserves_before.map(|before| reserves.saturating_sub(before));
            judge(name, &candidate.stats, taken)
        });
        let mut verdicts: Vec<Verdict> = judged.collect();
        verdicts.sort_by(|one, other| {
            other.for_ms.cmp(&one.for_ms).then_with(|| one.topic.cmp(&other.topic))
        });
        verdicts
    }
}

impl Candidate {
    /// Somebody has paused a topic on purpose: others come first.
    fn rank(&self) -> (bool, u64) {
        (self.stats.paused.is_none(), self.stats.oldest_ready_ms.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(ready: u64, late_ms: u64) -> TopicStats {
        TopicStats { ready, oldest_ready_ms: Some(late_ms), ..TopicStats::default() }
    }

    fn name(text: &str) -> TopicName {
        TopicName::new(text).unwrap()
    }

    #[test]
    fn the_worst_are_kept() {
        let mut candidates = Candidates::default();
        for number in 0..10 * KEPT_MAX as u64 {
            candidates.note(name(&format!("t{number}")), stats(1, 20_000 + number));
        }
        assert_eq!(candidates.kept.len(), KEPT_MAX);
        assert_eq!(candidates.verdicts(), [], "one look tells nothing");
        for _ in 0..2 {
            candidates.note(name("worst"), stats(1, 900_000));
        }
        let verdicts = candidates.verdicts();
        assert_eq!(verdicts[0].code, "no_consumer");
        assert_eq!(verdicts[0].topic, Some(name("worst")));
        // It recovers.
        candidates.note(name("worst"), stats(0, 0));
        assert_eq!(candidates.verdicts(), []);
        assert_eq!(candidates.kept.len(), KEPT_MAX - 1);
    }

    #[test]
    fn verdicts_are_few() {
        let mut candidates = Candidates::default();
        for _ in 0..2 {
            for number in 0..KEPT_MAX as u64 {
                candidates.note(name(&format!("t{number}")), stats(1, 20_000 + number));
            }
        }
        let verdicts = candidates.verdicts();
        assert_eq!(verdicts.len(), KEPT_MAX);
        assert!(verdicts.is_sorted_by(|one, other| one.for_ms >= other.for_ms));
    }
}
