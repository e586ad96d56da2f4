//! Which topics have series of their own: those that an operator must see, not those that come
//! first by name.
//!
//! There may be millions of topics, so a page looks at some thousand of them, and the next page
//! goes on where it ended. A *round* ends at the last name. Rankings of the round before and of the
//! present one hold the topics that are worst in one respect; the chosen ones are read again if
//! they were not read for this page.

use std::collections::{HashMap, HashSet};

use crate::limits::{METRICS_SURVEY_MS_MAX, METRICS_SURVEY_TOPICS_MAX, METRICS_TOPICS_MAX};
use dormouse_core::error::Error;
use dormouse_core::op::{Stats, TopicStats, Topics};
use dormouse_core::topic::TopicName;

use super::OTHER;
use super::stopwatch::Stopwatch;
use super::topics::TopicFigures;
use crate::client::BackendClient;

/// Topics fetched at once. The engine does nothing else meanwhile, and needs about 0.1 ms for a
/// topic that is spread over ten runs.
const PAGE: usize = 10;
/// One more than can be shown: the worst one that is not shown is known, too.
const RANKED_MAX: usize = METRICS_TOPICS_MAX + 1;

/// In what respect a topic needs to be seen.
const RESPECTS: [fn(&TopicStats) -> u64; 3] =
    [|stats| stats.oldest_ready_ms.unwrap_or(0), |stats| stats.ready, |stats| stats.counts.dead];
/// The index of the first of them.
const LATE: usize = 0;

/// The walk over all topics, and what it has found.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Always shown, if they exist.
    configured: Vec<TopicName>,
    /// Where the present round has come to; `None` = it begins.
    after: Option<TopicName>,
    before: Rankings,
    present: Rankings,
}

/// The topics of one round that may be shown.
#[derive(Debug, Default)]
struct Rankings {
    /// For each respect the worst topics, in no order; cut when it has twice as many as needed.
    worst: [Vec<(u64, TopicName)>; RESPECTS.len()],
    /// The first ones by name, for those places that nobody needs more.
    first: Vec<TopicName>,
}

/// What was read for one page.
#[derive(Default)]
struct Reading {
    stats: HashMap<TopicName, TopicStats>,
    /// Every topic was read, and may be shown.
    is_complete: bool,
}

impl Survey {
    pub(super) fn new(configured: Vec<TopicName>) -> Survey {
        Survey { configured, ..Survey::default() }
    }

    /// Fetches the figures for a page. It reads counters only, never jobs.
    pub(super) async fn fetch(&mut self, client: &BackendClient) -> Result<TopicFigures, Error> {
        let Reading { mut stats, is_complete } = self.walk(client).await?;
        let chosen = self.choose();
        let mut shown = Vec::with_capacity(chosen.len());
        let mut missing = Vec::new();
        for name in chosen {
            match stats.remove(&name) {
                Some(stats) => shown.push((name, stats)),
                None => missing.push(name),
            }
        }
        for names in missing.chunks(PAGE) {
            shown.extend(client.stats_of(names).await?);
        }
        shown.sort_by(|(one, _), (other, _)| one.cmp(other));
        let hidden_oldest_ms = self.hidden_oldest_ms(&shown);
        // After the topics, so that the totals are never less than the sum of those shown.
        let total = client.call(Stats { topic: None }).await?;
        Ok(TopicFigures {
            complete: is_complete && stats.is_empty(),
            shown,
            total,
            hidden_oldest_ms,
        })
    }

    /// Goes on with the walk for a while. At least as many topics as can be shown are read: a
    /// server with fewer has all of them on every page.
    async fn walk(&mut self, client: &BackendClient) -> Result<Reading, Error> {
        let begun = Stopwatch::start();
        let mut reading = Reading { is_complete: self.after.is_none(), ..Reading::default() };
        let mut walked = 0;
        loop {
            let page = client.call(Topics { after: self.after.clone(), limit: PAGE }).await?;
            walked += page.topics.len();
            self.after = page.topics.last().map(|(name, _)| name.clone());
            for (name, stats) in page.topics {
                // A topic with the name of the label would appear twice.
                if name.as_str() == OTHER {
                    reading.is_complete = false;
                    continue;
                }
                self.present.note(&name, &stats);
                reading.stats.insert(name, stats);
            }
            if !page.more || self.after.is_none() {
                self.after = None;
                self.before = std::mem::take(&mut self.present);
                return Ok(reading);
            }
            let is_late = begun.elapsed().as_millis() >= u128::from(METRICS_SURVEY_MS_MAX);
            if walked >= METRICS_SURVEY_TOPICS_MAX || is_late && walked >= METRICS_TOPICS_MAX {
                reading.is_complete = false;
                return Ok(reading);
            }
        }
    }

    /// The configured topics; then by turns the worst in each respect; then the first by name.
    fn choose(&self) -> HashSet<TopicName> {
        let mut chosen: HashSet<TopicName> =
            self.configured.iter().take(METRICS_TOPICS_MAX).cloned().collect();
        // A topic with the name of the label would appear twice.
        chosen.retain(|name| name.as_str() != OTHER);
        let mut ranked: [_; RESPECTS.len()] =
            std::array::from_fn(|respect| self.ranked(respect).into_iter());
        while chosen.len() < METRICS_TOPICS_MAX {
            let mut any = false;
            for ranking in &mut ranked {
                if chosen.len() < METRICS_TOPICS_MAX
                    && let Some((_, name)) = ranking.find(|(_, name)| !chosen.contains(name))
                {
                    chosen.insert(name);
                    any = true;
                }
            }
            if !any {
                break;
            }
        }
        for name in self.before.first.iter().chain(&self.present.first) {
            if chosen.len() == METRICS_TOPICS_MAX {
                break;
            }
            chosen.insert(name.clone());
        }
        chosen
    }

    /// The worst topics of both rounds in one respect, the worst first.
    fn ranked(&self, respect: usize) -> Vec<(u64, TopicName)> {
        let rounds = [&self.present, &self.before];
        // A topic that is in both has its present rank.
        let mut ranks = HashMap::new();
        for (rank, name) in rounds.into_iter().flat_map(|round| &round.worst[respect]) {
            ranks.entry(name.clone()).or_insert(*rank);
        }
        let mut ranked: Vec<_> = ranks.into_iter().map(|(name, rank)| (rank, name)).collect();
        sort(&mut ranked);
        ranked
    }

    /// How long the job that waits longest in a topic that is not shown has been ready.
    fn hidden_oldest_ms(&self, shown: &[(TopicName, TopicStats)]) -> Option<u64> {
        let is_shown = |name: &TopicName| shown.binary_search_by(|(one, _)| one.cmp(name)).is_ok();
        let mut ranked = self.ranked(LATE).into_iter();
        ranked.find(|(_, name)| !is_shown(name)).map(|(late_ms, _)| late_ms)
    }
}

impl Rankings {
    fn note(&mut self, name: &TopicName, stats: &TopicStats) {
        if self.first.len() < METRICS_TOPICS_MAX {
            self.first.push(name.clone());
        }
        for (worst, respect) in self.worst.iter_mut().zip(RESPECTS) {
            let rank = respect(stats);
            if rank == 0 {
                continue;
            }
            worst.push((rank, name.clone()));
            if worst.len() >= 2 * RANKED_MAX {
                sort(worst);
                worst.truncate(RANKED_MAX);
            }
        }
    }
}

/// The worst first, then by name, so that equal ones do not take turns.
fn sort(ranked: &mut [(u64, TopicName)]) {
    ranked.sort_unstable_by(|(rank, name), (other, than)| other.cmp(rank).then(name.cmp(than)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use dormouse_core::image::Counts;

    fn name(text: &str) -> TopicName {
        TopicName::new(text).unwrap()
    }

    fn stats(late_ms: u64, ready: u64, dead: u64) -> TopicStats {
        let counts = Counts { dead, ..Counts::default() };
        let oldest_ready_ms = (late_ms > 0).then_some(late_ms);
        TopicStats { ready, counts, oldest_ready_ms, ..TopicStats::default() }
    }

    /// Many topics of somebody else, which come first by name.
    fn many(survey: &mut Survey) {
        for number in 0..10 * METRICS_TOPICS_MAX {
            survey.present.note(&name(&format!("a{number:05}")), &stats(10, 5, 1));
        }
    }

    #[test]
    fn the_worst_are_shown_whatever_their_names() {
        let mut survey = Survey::new(vec![name("z.configured")]);
        many(&mut survey);
        survey.present.note(&name("z.late"), &stats(11, 1, 0));
        survey.present.note(&name("z.ready"), &stats(1, 6, 0));
        survey.present.note(&name("z.dead"), &stats(0, 0, 2));
        survey.present.note(&name("z.fine"), &stats(1, 1, 0));
        // Found in this round or in the one before, it makes no difference.
        for _ in 0..2 {
            let chosen = survey.choose();
            assert_eq!(chosen.len(), METRICS_TOPICS_MAX);
            for shown in ["z.configured", "z.late", "z.ready", "z.dead"] {
                assert!(chosen.contains(&name(shown)), "{shown}");
            }
            assert!(!chosen.contains(&name("z.fine")));
            survey.before = std::mem::take(&mut survey.present);
        }
    }

    #[test]
    fn a_topic_that_recovered_gives_its_place_back() {
        let mut survey = Survey::default();
        survey.before.note(&name("z"), &stats(900, 0, 0));
        many(&mut survey);
        assert!(survey.choose().contains(&name("z")), "the round has not come to it");
        survey.before = std::mem::take(&mut survey.present);
        many(&mut survey);
        assert!(!survey.choose().contains(&name("z")));
    }

    #[test]
    fn the_worst_that_is_not_shown_is_known() {
        let mut survey = Survey::default();
        many(&mut survey);
        let shown: Vec<_> = (0..METRICS_TOPICS_MAX)
            .map(|number| (name(&format!("a{number:05}")), TopicStats::default()))
            .collect();
        assert_eq!(survey.hidden_oldest_ms(&shown), Some(10));
        assert_eq!(Survey::default().hidden_oldest_ms(&[]), None);
    }

    #[test]
    fn rankings_stay_small() {
        let mut survey = Survey::default();
        for _ in 0..5 {
            many(&mut survey);
        }
        assert!(survey.present.worst.iter().all(|worst| worst.len() < 2 * RANKED_MAX));
        assert_eq!(survey.present.first.len(), METRICS_TOPICS_MAX);
    }
}
