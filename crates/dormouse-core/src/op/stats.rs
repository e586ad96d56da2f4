//! stats: counts of a topic or of all, at a cost independent of the backlog.

use std::collections::VecDeque;

use crate::command::{Command, Reply, operation};
use crate::error::Fatal;
use crate::image::Counts;
use crate::limits::{PORTION_ENTRIES, PRIORITY_DEFAULT, STATS_TOPICS_MAX};
use crate::machine::{
    ClassWalk, LongCommand, Machine, Portion, PortionBudget, Rule, VanishedCount,
};
use crate::place::{Class, Place};
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
    /// How long the job reserve would give next, did no limit hold it, has been ready.
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
        request => Command::Stats(request), Reply::Stats(reply) => Ok(*reply);
}

/// The counts between two portions.
#[derive(Debug)]
pub(crate) enum StatsProgress {
    /// Of a topic that is not there, though so many reserves wait on it.
    Waiters(u64),
    Topic(TopicCount),
    Total(TotalCount),
}

/// The counts of one topic as far as its classes were asked.
#[derive(Debug)]
pub(crate) struct TopicCount {
    topic: TopicNo,
    walk: ClassWalk,
    ready: u64,
    urgent: u64,
    /// The first priority that has ready jobs, its lanes, and the first of their jobs.
    first: Option<u32>,
    heads: VecDeque<Class>,
    oldest: Option<Place>,
    /// How often cancelled jobs were in the way of it.
    tries: usize,
}

/// The totals as far as topics were counted.
#[derive(Debug)]
pub(crate) struct TotalCount {
    /// Topics whose ready jobs are still to be added, the present one apart.
    topics: Vec<TopicNo>,
    present: Option<TopicCount>,
    ready: u64,
    urgent: u64,
    /// Ready jobs of all topics are added up.
    has_ready: bool,
    /// Topics that have vanished for callers, as far as they were looked at.
    vanished: VanishedCount,
}

/// So many portions pass cancelled jobs to find the oldest ready one; then it stays unknown.
const TRIES_MAX: usize = 16;

impl TopicCount {
    pub(crate) fn new(topic: TopicNo) -> TopicCount {
        let (walk, heads) = (ClassWalk::new(), VecDeque::new());
        TopicCount { topic, walk, ready: 0, urgent: 0, first: None, heads, oldest: None, tries: 0 }
    }

    /// Lanes of the first priority that has ready jobs may have the oldest.
    fn note_ready(&mut self, class: Class, priority: u32, ready: u64) {
        self.ready += ready;
        if priority < PRIORITY_DEFAULT {
            self.urgent += ready;
        }
        if ready == 0 || self.first.is_some_and(|first| first < priority) {
            return;
        }
        if self.first != Some(priority) {
            // Parked lanes come last, whatever their priority.
            self.heads.clear();
        }
        self.first = Some(priority);
        self.heads.push_back(class);
    }

    /// The jobs that are compared have the same priority.
    fn note_head(&mut self, head: Place, now: Now) {
        let is_first =
            |oldest: Place| (head.overdue_ms(now), oldest.id) > (oldest.overdue_ms(now), head.id);
        if head.is_due(now) && self.oldest.is_none_or(is_first) {
            self.oldest = Some(head);
        }
    }
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn stats(&mut self, now: Now, stats: Stats) -> Rule<LongCommand> {
        let progress = match stats.topic {
            Some(name) => self.stats_of(now, &name)?,
            None => StatsProgress::Total(self.total_stats()),
        };
        Ok(LongCommand::Stats(Box::new(progress)))
    }

    pub(crate) fn stats_portion(&mut self, now: Now, progress: StatsProgress) -> Rule<Portion> {
        let mut budget = PortionBudget::new();
        let stats = match progress {
            StatsProgress::Waiters(waiters) => {
                TopicStats { waiters, topics: 1, ..TopicStats::default() }
            }
            StatsProgress::Topic(mut count) => {
                if !self.count_topic(now, &mut count, &mut budget)? {
                    return Ok(Portion::More(LongCommand::Stats(Box::new(StatsProgress::Topic(
                        count,
                    )))));
                }
                self.topic_stats(now, &count)
            }
            StatsProgress::Total(mut count) => {
                if !self.count_all(now, &mut count, &mut budget)? {
                    return Ok(Portion::More(LongCommand::Stats(Box::new(StatsProgress::Total(
                        count,
                    )))));
                }
                self.totals_of(&count)
            }
        };
        Ok(Portion::Done(Reply::Stats(Box::new(stats))))
    }

    fn stats_of(&mut self, now: Now, name: &TopicName) -> Rule<StatsProgress> {
        if let Some(topic) = self.topics.find_visible(name, now) {
            return Ok(StatsProgress::Topic(TopicCount::new(topic)));
        }
        let waiters = self.waiters.on(name) as u64;
        if waiters == 0 {
            return Err(no_topic(name).into());
        }
        // A consumer waits for its first job.
        Ok(StatsProgress::Waiters(waiters))
    }

    /// Asks the classes of a topic, as far as the budget reaches; tells whether all were asked.
    pub(crate) fn count_topic(
        &mut self,
        now: Now,
        count: &mut TopicCount,
        budget: &mut PortionBudget,
    ) -> Result<bool, Fatal> {
        Ok(self.count_classes(now, count, budget)? && self.find_oldest(now, count, budget)?)
    }

    pub(super) fn count_classes(
        &mut self,
        now: Now,
        count: &mut TopicCount,
        budget: &mut PortionBudget,
    ) -> Result<bool, Fatal> {
        while budget.is_left() {
            let Some(class) = self.next_class(count.topic, &mut count.walk)? else {
                return Ok(true);
            };
            budget.look(2 * self.timeline.sources());
            let ready = self.timeline.count(count.topic, class, now.on(class.clock()))?;
            let parked = class.is_parked().then(|| self.groups.priority_of(count.topic, class));
            let priority = parked.flatten().unwrap_or_else(|| class.priority());
            count.note_ready(class, priority, ready);
        }
        Ok(false)
    }

    /// Looks for the job that reserve would give next if the topic were not paused.
    fn find_oldest(
        &mut self,
        now: Now,
        count: &mut TopicCount,
        budget: &mut PortionBudget,
    ) -> Result<bool, Fatal> {
        while let Some(class) = count.heads.front().copied() {
            if !budget.is_left() {
                return Ok(false);
            }
            budget.look(self.timeline.sources());
            match self.timeline.oldest(count.topic, class)? {
                Head::At(head) => count.note_head(head, now),
                Head::Again if count.tries < TRIES_MAX => {
                    count.tries += 1;
                    return Ok(false);
                }
                Head::Empty | Head::Again => {}
            }
            count.heads.pop_front();
        }
        Ok(true)
    }

    /// The counts of a topic whose classes were all asked, at the instant at which the last was.
    pub(crate) fn topic_stats(&self, now: Now, count: &TopicCount) -> TopicStats {
        let Some(value) = self.topics.get(count.topic) else { return TopicStats::default() };
        TopicStats {
            delayed: value.counts.waiting.saturating_sub(count.ready),
            ready: count.ready,
            urgent: count.urgent,
            counts: value.counts,
            waiters: self.waiters.on(&value.name) as u64,
            oldest_ready_ms: count.oldest.map(|place| place.overdue_ms(now)),
            paused: value.paused(now),
            settings: value.settings.clone(),
            topics: 1,
            locks: 0,
        }
    }

    /// The topics whose ready jobs are to be added up. With many topics they are not, that would
    /// cost too much: then only `counts.waiting` has the waiting jobs.
    fn total_stats(&self) -> TotalCount {
        let has_ready = self.topics.len() <= STATS_TOPICS_MAX;
        let topics = if has_ready { self.topics.numbers() } else { Vec::new() };
        let vanished = VanishedCount::default();
        TotalCount { topics, present: None, ready: 0, urgent: 0, has_ready, vanished }
    }

    /// Counts topics as far as the budget reaches; tells whether all are counted.
    fn count_all(
        &mut self,
        now: Now,
        count: &mut TotalCount,
        budget: &mut PortionBudget,
    ) -> Result<bool, Fatal> {
        if !self.topics.count_vanished(now, &mut count.vanished, PORTION_ENTRIES) {
            return Ok(false);
        }
        while budget.is_left() {
            let next = count.present.take().or_else(|| count.topics.pop().map(TopicCount::new));
            let Some(mut present) = next else { return Ok(true) };
            if self.count_classes(now, &mut present, budget)? {
                count.ready += present.ready;
                count.urgent += present.urgent;
            } else {
                count.present = Some(present);
            }
        }
        Ok(false)
    }

    /// The totals of the instant at which the last topic was counted.
    fn totals_of(&self, count: &TotalCount) -> TopicStats {
        let delayed = self.totals.waiting.saturating_sub(count.ready);
        TopicStats {
            delayed: if count.has_ready { delayed } else { 0 },
            ready: count.ready,
            urgent: count.urgent,
            counts: self.totals,
            waiters: self.waiters.len() as u64,
            topics: self.topics.len().saturating_sub(count.vanished.count) as u64,
            locks: self.locks.len() as u64,
            ..TopicStats::default()
        }
    }
}
