//! Topics by what is worst in them: a survey of their counts, made while somebody asks for it.
//!
//! There is no order of topics by counts in any store, and there may be millions of topics. So the
//! first who asks starts a task that walks over them by name in short passes, a few topics at a
//! time, and keeps four figures of each. A *round* ends at the last name; topics that a round did
//! not meet are forgotten at its end. The task ends, and forgets all, when nobody asked for a
//! while.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use dormouse_core::error::Error;
use dormouse_core::op::{TopicStats, Topics, TopicsPage};
use dormouse_core::topic::TopicName;
use tokio::sync::watch;

use crate::client::BackendClient;
use crate::limits::{
    RANKING_IDLE_MS, RANKING_PASS_MS, RANKING_PASS_MS_MAX, RANKING_PASS_TOPICS, RANKING_TOPICS_MAX,
};
use crate::metrics::Stopwatch;

/// Topics fetched at once. The engine does nothing else meanwhile, and needs about 0.1 ms for a
/// topic that is spread over ten runs.
const PORTION: usize = 10;
/// How long the first who ask wait for the first pass: later ones answer with what is there.
const FIRST_PASS_MS_MAX: u64 = 500;

/// Topics that one step of an answer compares. The thread has other requests to serve, and the
/// survey waits for the findings.
const COMPARED_AT_ONCE: usize = 1_000;

/// What topics are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Respect {
    Ready,
    Dead,
    Waiting,
    Oldest,
}

impl Respect {
    /// The figure of a topic, which is to be large.
    pub(crate) fn of(self, stats: &TopicStats) -> u64 {
        match self {
            Respect::Ready => stats.ready,
            Respect::Dead => stats.counts.dead,
            Respect::Waiting => stats.counts.waiting,
            Respect::Oldest => stats.oldest_ready_ms.unwrap_or(0),
        }
    }
}

const RESPECTS: [Respect; 4] = [Respect::Ready, Respect::Dead, Respect::Waiting, Respect::Oldest];

/// The topics that were chosen, the worst first.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) names: Vec<TopicName>,
    /// How many were compared.
    pub(crate) looked_at: usize,
    /// The age of the oldest figure that was compared.
    pub(crate) age: Duration,
    /// All topics were compared.
    pub(crate) is_complete: bool,
}

/// The survey. It lives as long as the server.
pub(crate) struct Ranking(Arc<Inner>);

struct Inner {
    client: BackendClient,
    findings: Mutex<Findings>,
    /// The number of passes.
    passes: watch::Sender<u64>,
}

/// What the task has seen.
#[derive(Default)]
struct Findings {
    topics: BTreeMap<TopicName, Figures>,
    /// The round under way, and where it has come to; `None` = it begins.
    round: u64,
    after: Option<TopicName>,
    /// How many topics it has met.
    met: usize,
    /// A round has met every topic, and since then none was left out.
    is_complete: bool,
    /// When somebody asked last; `None` = there is no task.
    asked: Option<Stopwatch>,
}

/// The figures of a topic, by [`RESPECTS`].
struct Figures {
    counts: [u64; RESPECTS.len()],
    round: u64,
    read: Stopwatch,
}

impl Ranking {
    pub(crate) fn new(client: BackendClient) -> Ranking {
        let (findings, passes) = (Mutex::default(), watch::Sender::new(0));
        Ranking(Arc::new(Inner { client, findings, passes }))
    }

    /// The worst topics among those with this prefix that may be seen, at most `limit`.
    pub(crate) async fn worst(
        &self,
        respect: Respect,
        prefix: &str,
        limit: usize,
        may_see: impl Fn(&str) -> bool,
    ) -> Chosen {
        let mut passes = self.0.passes.subscribe();
        if self.0.findings().ask() {
            tokio::spawn(survey(Arc::downgrade(&self.0)));
        }
        let first_pass = passes.wait_for(|&passes| passes > 0);
        // If it takes longer, or never comes because the server stops, there is less to choose of.
        drop(tokio::time::timeout(Duration::from_millis(FIRST_PASS_MS_MAX), first_pass).await);
        let mut selection = Selection::new(respect, prefix, limit);
        while !self.0.findings().compare(&mut selection, &may_see) {
            tokio::task::yield_now().await;
        }
        selection.into_chosen(self.0.findings().is_complete)
    }
}

/// Passes over the topics until nobody asks any more, or the server is gone.
async fn survey(inner: Weak<Inner>) {
    loop {
        let Some(strong) = inner.upgrade() else { return };
        let passed = strong.pass().await;
        strong.passes.send_modify(|passes| *passes += 1);
        {
            let mut findings = strong.findings();
            if passed.is_err() || findings.is_idle() {
                // Whoever asks from now on starts another task.
                *findings = Findings::default();
                strong.passes.send_replace(0);
                return;
            }
        }
        // A server that stops must not wait for this.
        drop(strong);
        tokio::time::sleep(Duration::from_millis(RANKING_PASS_MS)).await;
    }
}

impl Inner {
    fn findings(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on with the round for a while.
    async fn pass(&self) -> Result<(), Error> {
        let begun = Stopwatch::start();
        let mut looked_at = 0;
        while looked_at < RANKING_PASS_TOPICS
            && begun.elapsed() < Duration::from_millis(RANKING_PASS_MS_MAX)
        {
            let after = self.findings().after.clone();
            let page = self.client.call(Topics { after, limit: PORTION }).await?;
            looked_at += page.topics.len();
            if self.findings().take(&page, RANKING_TOPICS_MAX) {
                break;
            }
        }
        Ok(())
    }
}

impl Findings {
    /// Somebody asks; true if the task is to be started.
    fn ask(&mut self) -> bool {
        self.asked.replace(Stopwatch::start()).is_none()
    }

    fn is_idle(&self) -> bool {
        let idle_ms = Duration::from_millis(RANKING_IDLE_MS);
        self.asked.is_none_or(|asked| asked.elapsed() >= idle_ms)
    }

    /// Notes the next topics of the round, which meets `topics_max` at most; true if it is over.
    /// The limit is that of a round, so with what the last round met the map holds twice as many.
    fn take(&mut self, page: &TopicsPage, topics_max: usize) -> bool {
        for (name, stats) in &page.topics {
            self.note(name, stats);
        }
        self.met += page.topics.len();
        self.after = page.topics.last().map(|(name, _)| name.clone()).filter(|_| page.more);
        let is_over = self.after.is_none() || self.met >= topics_max;
        if is_over {
            // If there is no room for the others, those that are known are read again.
            self.end_round(self.after.is_none());
        }
        is_over
    }

    fn note(&mut self, name: &TopicName, stats: &TopicStats) {
        let counts = RESPECTS.map(|respect| respect.of(stats));
        let figures = Figures { counts, round: self.round, read: Stopwatch::start() };
        self.topics.insert(name.clone(), figures);
    }

    /// What this round did not meet has vanished, or has no room any more.
    fn end_round(&mut self, is_complete: bool) {
        let round = self.round;
        self.topics.retain(|_, figures| figures.round == round);
        (self.round, self.after, self.met) = (round + 1, None, 0);
        self.is_complete = is_complete;
    }

    /// Compares the next topics with those that were selected; true if there are no more.
    fn compare(&self, selection: &mut Selection<'_>, may_see: impl Fn(&str) -> bool) -> bool {
        let prefix = selection.prefix;
        let range = self.topics.range((selection.from.clone(), Bound::Unbounded));
        let mut matching = range.take_while(|(name, _)| name.as_str().starts_with(prefix));
        let mut last = None;
        for (name, figures) in matching.by_ref().take(COMPARED_AT_ONCE) {
            last = Some(name);
            if may_see(name.as_str()) {
                selection.add(name, figures);
            }
        }
        let is_end = matching.next().is_none();
        if let Some(last) = last {
            selection.from = Bound::Excluded(last.clone());
        }
        is_end
    }
}

/// The worst of the topics that were compared so far.
struct Selection<'a> {
    index: usize,
    prefix: &'a str,
    limit: usize,
    /// Where to go on.
    from: Bound<TopicName>,
    /// The one that goes first if a worse one comes is the greatest.
    worst: BinaryHeap<(Reverse<u64>, TopicName)>,
    looked_at: usize,
    oldest: Option<Stopwatch>,
}

impl<'a> Selection<'a> {
    fn new(respect: Respect, prefix: &'a str, limit: usize) -> Selection<'a> {
        let index = RESPECTS.iter().position(|known| *known == respect).unwrap_or(0);
        let from = TopicName::new(prefix).map_or(Bound::Unbounded, Bound::Included);
        let worst = BinaryHeap::new();
        Selection { index, prefix, limit, from, worst, looked_at: 0, oldest: None }
    }

    fn add(&mut self, name: &TopicName, figures: &Figures) {
        self.looked_at += 1;
        self.oldest = Some(self.oldest.map_or(figures.read, |oldest| oldest.min(figures.read)));
        let figure = Reverse(figures.counts[self.index]);
        let has_room = self.worst.len() < self.limit;
        if !has_room && self.worst.peek().is_none_or(|last| (last.0, &last.1) < (figure, name)) {
            return;
        }
        self.worst.push((figure, name.clone()));
        if !has_room {
            self.worst.pop();
        }
    }

    fn into_chosen(self, is_complete: bool) -> Chosen {
        let names = self.worst.into_sorted_vec().into_iter().map(|(_, name)| name).collect();
        let age = self.oldest.map_or(Duration::ZERO, |oldest| oldest.elapsed());
        Chosen { names, looked_at: self.looked_at, age, is_complete }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_core::image::Counts;

    use super::*;

    fn name(text: &str) -> TopicName {
        TopicName::new(text).unwrap()
    }

    fn stats(ready: u64, dead: u64) -> TopicStats {
        let counts = Counts { dead, waiting: ready, ..Counts::default() };
        TopicStats { ready, counts, ..TopicStats::default() }
    }

    fn worst(
        findings: &Findings,
        (respect, prefix, limit): (Respect, &str, usize),
        may_see: impl Fn(&str) -> bool,
    ) -> Chosen {
        let mut selection = Selection::new(respect, prefix, limit);
        while !findings.compare(&mut selection, &may_see) {}
        selection.into_chosen(findings.is_complete)
    }

    fn names(chosen: &Chosen) -> Vec<&str> {
        chosen.names.iter().map(TopicName::as_str).collect()
    }

    #[test]
    fn the_worst_come_first_and_equal_ones_by_name() {
        let mut findings = Findings::default();
        for (topic, ready, dead) in [("a", 1, 9), ("b.1", 5, 0), ("b.2", 5, 1), ("c", 0, 0)] {
            findings.note(&name(topic), &stats(ready, dead));
        }
        let check = |respect, prefix, limit, expected: &[&str], looked_at| {
            let chosen = worst(&findings, (respect, prefix, limit), |_| true);
            assert_eq!((names(&chosen), chosen.looked_at), (expected.to_vec(), looked_at));
        };
        check(Respect::Ready, "", 9, &["b.1", "b.2", "a", "c"], 4);
        check(Respect::Ready, "", 2, &["b.1", "b.2"], 4);
        check(Respect::Dead, "", 2, &["a", "b.2"], 4);
        check(Respect::Waiting, "b", 9, &["b.1", "b.2"], 2);
        check(Respect::Oldest, "b.", 1, &["b.1"], 2);
        check(Respect::Dead, "d", 9, &[], 0);
        let some = worst(&findings, (Respect::Ready, "", 9), |topic| topic < "b");
        assert_eq!((names(&some), some.looked_at, some.is_complete), (vec!["a"], 1, false));
    }

    #[test]
    fn many_topics_are_compared_in_steps() {
        let mut findings = Findings::default();
        let topics = 3 * COMPARED_AT_ONCE as u64;
        for number in 0..topics {
            findings.note(&name(&format!("t{number:05}")), &stats(number * 7 % 3_000, 0));
        }
        let mut selection = Selection::new(Respect::Ready, "t", 3);
        assert!(!findings.compare(&mut selection, |_| true));
        assert_eq!(selection.looked_at, COMPARED_AT_ONCE);
        let chosen = worst(&findings, (Respect::Ready, "t", 3), |_| true);
        let of = |ready: u64| (0..topics).find(|number| number * 7 % 3_000 == ready).unwrap();
        let expected = [2_999, 2_998, 2_997].map(|ready| format!("t{:05}", of(ready)));
        assert_eq!(
            (names(&chosen), chosen.looked_at),
            (expected.each_ref().map(String::as_str).to_vec(), 3_000)
        );
    }

    #[test]
    fn what_a_round_does_not_meet_is_forgotten() {
        let mut findings = Findings::default();
        findings.note(&name("gone"), &stats(1, 1));
        findings.note(&name("here"), &stats(1, 1));
        findings.end_round(true);
        findings.note(&name("here"), &stats(2, 1));
        let chosen = worst(&findings, (Respect::Ready, "", 9), |_| true);
        assert_eq!((names(&chosen), chosen.is_complete), (vec!["here", "gone"], true));
        findings.end_round(true);
        assert_eq!(names(&worst(&findings, (Respect::Ready, "", 9), |_| true)), ["here"]);
    }

    #[test]
    fn with_more_topics_than_there_is_room_for_every_round_reads_all_it_has_room_for() {
        let page = |topics: &[&str], ready| TopicsPage {
            topics: topics.iter().map(|topic| (name(topic), stats(ready, 0))).collect(),
            more: true,
        };
        let mut findings = Findings::default();
        assert!(!findings.take(&page(&["a", "b"], 1), 4));
        assert!(findings.take(&page(&["c", "d"], 1), 4));
        // The map is full, and the second round goes on to its end all the same.
        assert!(!findings.take(&page(&["a", "c"], 2), 4));
        assert_eq!(findings.after, Some(name("c")));
        assert!(findings.take(&page(&["d", "e"], 3), 4));
        assert_eq!(findings.after, None);
        let chosen = worst(&findings, (Respect::Ready, "", 9), |_| true);
        assert_eq!((names(&chosen), chosen.is_complete), (vec!["d", "e", "a", "c"], false));
    }

    #[test]
    fn the_first_who_asks_starts_the_task() {
        let mut findings = Findings::default();
        assert!(findings.is_idle());
        assert!(findings.ask());
        assert!(!findings.ask());
        assert!(!findings.is_idle());
    }
}
