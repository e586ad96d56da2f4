//! stats: counts of a topic or of all, at a cost independent of the backlog.

use crate::command::{Command, Reply, operation};
use crate::error::Fatal;
use crate::image::Counts;
use crate::limits::{PORTION_TOPICS, PRIORITY_DEFAULT, STATS_TOPICS_MAX};
use crate::machine::{LongCommand, Machine, Portion, Rule};
use crate::refusal::no_topic;
use crate::time::Now;
use crate::timeline::{Head, Timeline};
use crate::topic::{Settings, TopicName, TopicNo};

/// Ask for counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Of this topic; `None` = of all together.
    pub topic: Option<TopicName>,
}

/// Counts of a topic, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicStats {
    /// Not due yet.
    pub delayed: u64,
    /// Due.
    pub ready: u64,
    /// Due, with a priority below the default.
    pub urgent: u64,
    /// Running totals; `counts.waiting` is delayed + ready.
    pub counts: Counts,
    /// Reserves waiting on it.
    pub waiters: u64,
    /// How long the job reserve would give next has been ready.
    pub oldest_ready_ms: Option<u64>,
    /// Reserve gives nothing from it; how long still, if that is known.
    pub paused: Option<Option<u64>>,
    /// Its settings.
    pub settings: Settings,
    /// Topics alive; 1 for a single one.
    pub topics: u64,
    /// Locks held, in the totals only.
    pub locks: u64,
}

operation! {
    Stats => TopicStats,
        request => Command::Stats(request), Reply::Stats(reply) => Ok(reply);
}

/// The counts between two portions.
#[derive(Debug)]
pub(crate) struct StatsProgress {
    stats: TopicStats,
    /// Topics whose ready jobs are still to be added.
    topics: Vec<TopicNo>,
    /// Ready jobs of all topics are added up.
    is_total: bool,
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn stats(&mut self, now: Now, stats: Stats) -> Rule<LongCommand> {
        Ok(LongCommand::Stats(match stats.topic {
            Some(name) => {
                let stats = self.stats_of(now, &name)?;
                StatsProgress { stats, topics: Vec::new(), is_total: false }
            }
            None => self.total_stats(now),
        }))
    }

    pub(crate) fn stats_portion(&mut self, now: Now, mut progress: StatsProgress) -> Rule<Portion> {
        for _ in 0..PORTION_TOPICS {
            let Some(topic) = progress.topics.pop() else {
                return Ok(Portion::Done(Reply::Stats(self.complete(progress))));
            };
            self.count_ready(now, topic, &mut progress.stats)?;
        }
        Ok(Portion::More(LongCommand::Stats(progress)))
    }

    /// The totals of the instant at which the last topic was counted.
    fn complete(&self, progress: StatsProgress) -> TopicStats {
        let mut stats = progress.stats;
        if progress.is_total {
            stats.counts = self.totals;
            stats.delayed = stats.counts.waiting.saturating_sub(stats.ready);
        }
        stats
    }

    fn stats_of(&mut self, now: Now, name: &TopicName) -> Rule<TopicStats> {
        if let Some(topic) = self.topics.find_visible(name, now) {
            return Ok(self.topic_stats(now, topic)?);
        }
        let waiters = self.waiters.on(name) as u64;
        if waiters == 0 {
            return Err(no_topic(name).into());
        }
        // A consumer waits for its first job.
        Ok(TopicStats { waiters, topics: 1, ..TopicStats::default() })
    }

    pub(crate) fn topic_stats(&mut self, now: Now, topic: TopicNo) -> Result<TopicStats, Fatal> {
        let Some(value) = self.topics.get(topic) else { return Ok(TopicStats::default()) };
        let mut stats = TopicStats {
            counts: value.counts,
            waiters: self.waiters.on(&value.name) as u64,
            paused: value.paused(now),
            settings: value.settings.clone(),
            topics: 1,
            ..TopicStats::default()
        };
        self.count_ready(now, topic, &mut stats)?;
        stats.delayed = stats.counts.waiting.saturating_sub(stats.ready);
        if let Head::At(place) = self.next_ready(topic, now)? {
            stats.oldest_ready_ms = Some(place.overdue_ms(now));
        }
        Ok(stats)
    }

    /// The totals, and the topics whose ready jobs are to be added. With many topics they are not,
    /// that would cost too much: then only `counts.waiting` has the waiting jobs.
    fn total_stats(&mut self, now: Now) -> StatsProgress {
        let stats = TopicStats {
            counts: self.totals,
            waiters: self.waiters.len() as u64,
            topics: self.topics.visible(now) as u64,
            locks: self.locks.len() as u64,
            ..TopicStats::default()
        };
        let is_total = self.topics.len() <= STATS_TOPICS_MAX;
        let topics = if is_total { self.topics.numbers() } else { Vec::new() };
        StatsProgress { stats, topics, is_total }
    }

    fn count_ready(&mut self, now: Now, topic: TopicNo, to: &mut TopicStats) -> Result<(), Fatal> {
        for class in self.timeline.classes(topic)? {
            let ready = self.timeline.count(topic, class, now.on(class.clock()))?;
            to.ready += ready;
            if class.priority() < PRIORITY_DEFAULT {
                to.urgent += ready;
            }
        }
        Ok(())
    }
}
