//! The task that asks the backend: a beat each second while somebody reads, else a sample every ten
//! seconds for the history.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dormouse_core::error::{Code, Error};
use dormouse_core::op::{Stats, TopicStats, Topics};
use dormouse_core::topic::TopicName;

use super::beat::{Changes, changes, growth};
use super::candidates::Candidates;
use super::{Beat, Hub, PORTION, Rates, TopicBeat, Verdict};
use crate::limits::{HISTORY_TOPICS_MAX, PULSE_FIGURES_MAX};
use crate::metrics::Stopwatch;
use crate::units::wall_ms;

/// The time between two beats.
pub(super) const BEAT: Duration = Duration::from_secs(1);
/// The least time between two beats: a new reader does not wait for the next full second.
const BEAT_MIN: Duration = Duration::from_millis(200);
/// The time between two samples if nobody reads, and between those of topics.
const SAMPLE_S: u64 = 10;
/// A sample that nobody reads may take a thousandth of the time: on Redis it costs a script for
/// every partition of every topic.
const IDLE_REST: u32 = 1_000;
/// After a beat that took long, the backend is left alone for so many times as long.
const SLOW_REST: u32 = 4;
/// Time for the backend to answer.
const BACKEND_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a put that was refused for lack of room is told.
const FULL_TOLD: Duration = Duration::from_secs(60);

/// The state of the task.
pub(super) struct Sampler {
    hub: Arc<Hub>,
    /// The last look at all topics.
    before: Option<(Stopwatch, Changes)>,
    topics: HashMap<TopicName, Looked>,
    /// Where the turns among wanted topics have come to.
    turn: usize,
    candidates: Candidates,
    /// Puts refused for lack of room, and when their number grew last.
    full: u64,
    full_at: Option<Stopwatch>,
    /// The last sample of topics for the history.
    sampled_at_s: Option<u64>,
}

/// The last look at a topic.
struct Looked {
    at: Stopwatch,
    changes: Changes,
    beat: TopicBeat,
}

/// How long to rest after a beat for which the backend was asked for so long.
fn rest_of_beat(asked: Duration) -> Duration {
    if asked > BEAT / 2 { asked * SLOW_REST } else { BEAT - asked }
}

/// What the backend answered.
struct Answers {
    all: TopicStats,
    verdicts: Vec<Verdict>,
}

impl Sampler {
    pub(super) fn new(hub: Arc<Hub>) -> Sampler {
        let full = hub.metrics.puts_full();
        let candidates = Candidates::default();
        let (before, full_at, sampled_at_s) = (None, None, None);
        let topics = HashMap::new();
        Sampler { hub, before, topics, turn: 0, candidates, full, full_at, sampled_at_s }
    }

    /// Runs until the server stops.
    pub(super) async fn run(mut self) {
        let mut arrivals = self.hub.arrivals.subscribe();
        loop {
            let begun = Stopwatch::start();
            let serial = *arrivals.borrow_and_update();
            if self.is_read() {
                self.beat(serial).await;
            } else {
                self.sample().await;
            }
            let asked = begun.elapsed();
            let next = async {
                let rest = if self.is_read() {
                    rest_of_beat(asked)
                } else {
                    let rest_s = SAMPLE_S - self.hub.now_s() % SAMPLE_S;
                    Duration::from_secs(rest_s).max(asked * IDLE_REST)
                };
                tokio::time::sleep(rest).await;
            };
            let arrival = async {
                // The sender is in the hub, so it cannot fail.
                let _ = arrivals.changed().await;
                tokio::time::sleep(BEAT_MIN.saturating_sub(begun.elapsed())).await;
            };
            tokio::select! {
                () = self.hub.client.stopping() => return,
                () = next => {}
                () = arrival => {}
            }
        }
    }

    fn is_read(&self) -> bool {
        let has_readers = self.hub.latest.receiver_count() > 0;
        // Who polls comes again.
        has_readers
            || !self.hub.wanted().is_empty()
            || self.hub.history().wants_seconds(self.hub.now_s())
    }

    /// Takes a sample for the history alone. Nobody waits for it, so an error is not told.
    async fn sample(&mut self) {
        self.topics.clear();
        let sampled = tokio::time::timeout(BACKEND_TIMEOUT, async {
            let all = self.hub.client.call(Stats { topic: None }).await?;
            self.note_all(&all, false);
            self.sample_topics().await
        });
        if let Ok(Err(error)) = sampled.await {
            tracing::debug!(%error, "a sample for the history failed");
        }
    }

    /// Makes a beat for all readers.
    async fn beat(&mut self, serial: u64) {
        let answered = tokio::time::timeout(BACKEND_TIMEOUT, self.ask()).await;
        let (answers, up) = match answered {
            Ok(Ok(answers)) => (Some(answers), true),
            Ok(Err(error)) => (None, error.code == Code::Busy),
            Err(_) => (None, false),
        };
        let (all, rates, of_topics) = match answers {
            Some((answers, rates)) => (Some(answers.all), rates, answers.verdicts),
            None => (None, None, Vec::new()),
        };
        let mut verdicts = self.verdicts_of_server(up);
        verdicts.extend(of_topics);
        let figures = self.topics.iter().map(|(name, looked)| (name.clone(), looked.beat.clone()));
        let beat = Beat {
            at: wall_ms(),
            up,
            all,
            rates,
            lateness: self.hub.metrics.lateness(),
            meters: self.hub.client.backend().meters(),
            topics: figures.collect(),
            verdicts,
            looked_at: self.candidates.looked_at(),
            serial,
            made: Stopwatch::start(),
        };
        self.hub.latest.send_replace(Some(Arc::new(beat)));
    }

    async fn ask(&mut self) -> Result<(Answers, Option<Rates>), Error> {
        let all = self.hub.client.call(Stats { topic: None }).await?;
        let rates = self.note_all(&all, true);
        self.look_at_wanted().await?;
        let verdicts = self.candidates.look(&self.hub.client).await?;
        self.sample_topics().await?;
        Ok((Answers { all, verdicts }, rates))
    }

    /// Notes the totals; returns their rates since the look before.
    fn note_all(&mut self, all: &TopicStats, each_second: bool) -> Option<Rates> {
        let now_s = self.hub.now_s();
        self.hub.history().note_all(now_s, all, each_second);
        let present = changes(&all.counts);
        let before = self.before.replace((Stopwatch::start(), present));
        before.map(|(at, before)| Rates::new(growth(present, before), at.elapsed()))
    }

    /// Looks at the topics that readers asked for; if they are too many, at some by turns.
    async fn look_at_wanted(&mut self) -> Result<(), Error> {
        let mut wanted = self.hub.wanted().names();
        self.topics.retain(|name, _| wanted.binary_search(name).is_ok());
        let now_s = self.hub.now_s();
        let looked_at = wanted.len().min(PULSE_FIGURES_MAX);
        if !wanted.is_empty() {
            let turn = if wanted.len() > PULSE_FIGURES_MAX { self.turn % wanted.len() } else { 0 };
            wanted.rotate_left(turn);
            self.turn = turn + looked_at;
        }
        for names in wanted[..looked_at].chunks(PORTION) {
            let found = self.hub.client.stats_of(names).await?;
            let is_found = |name: &TopicName| found.iter().any(|(found, _)| found == name);
            self.topics.retain(|name, _| !names.contains(name) || is_found(name));
            for (name, stats) in found {
                self.hub.history().follow(&name, now_s);
                let changes = changes(&stats.counts);
                let before = self.topics.get(&name);
                let rates = before
                    .map(|before| Rates::new(growth(changes, before.changes), before.at.elapsed()));
                let beat = TopicBeat { stats, rates };
                self.topics.insert(name, Looked { at: Stopwatch::start(), changes, beat });
            }
        }
        Ok(())
    }

    /// Samples the topics that the history follows, if it is time.
    async fn sample_topics(&mut self) -> Result<(), Error> {
        let now_s = self.hub.now_s();
        if self.sampled_at_s.is_some_and(|at_s| at_s / SAMPLE_S == now_s / SAMPLE_S) {
            return Ok(());
        }
        self.sampled_at_s = Some(now_s);
        let asked = self.hub.history().asked();
        let mut of_asked = Vec::with_capacity(asked.len());
        for names in asked.chunks(PORTION) {
            of_asked.extend(self.hub.client.stats_of(names).await?);
        }
        let mut first: Vec<(TopicName, TopicStats)> = Vec::new();
        while first.len() + asked.len() < HISTORY_TOPICS_MAX {
            let after = first.last().map(|(name, _)| name.clone());
            let page = self.hub.client.call(Topics { after, limit: PORTION }).await?;
            let is_last = !page.more || page.topics.is_empty();
            first.extend(page.topics);
            if is_last {
                break;
            }
        }
        self.hub.history().note_topics(now_s, &first, &of_asked);
        Ok(())
    }

    fn verdicts_of_server(&mut self, up: bool) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        if !up {
            verdicts.push(Verdict::of_server("unavailable", "the store does not answer"));
        }
        let full = self.hub.metrics.puts_full();
        if full > self.full {
            (self.full, self.full_at) = (full, Some(Stopwatch::start()));
        }
        if self.full_at.is_some_and(|at| at.elapsed() < FULL_TOLD) {
            let text = "puts are refused: a topic or the disk is full";
            verdicts.push(Verdict::of_server("full", text));
        }
        if let Some(concern) = self.hub.client.backend().concern() {
            verdicts.push(Verdict::of_server("store", concern));
        }
        verdicts
    }
}
