//! What was counted since the start, in rings of steps.
//!
//! All topics together have three rings, up to 200 topics one each: at most 3 MB, because a step
//! has 40 bytes.

use std::collections::{HashMap, VecDeque};

use dormouse_core::op::TopicStats;
use dormouse_core::topic::TopicName;

use super::beat::{Changes, changes, growth};
use crate::limits::HISTORY_TOPICS_MAX;

/// How long samples are taken each second after the history by seconds was asked for.
const ASKED_S: u64 = 300;

/// The length of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Second,
    TenSeconds,
    Minute,
}

impl Step {
    pub(crate) const ALL: [(&'static str, Step); 3] =
        [("1s", Step::Second), ("10s", Step::TenSeconds), ("1m", Step::Minute)];

    pub(crate) fn seconds(self) -> u64 {
        match self {
            Step::Second => 1,
            Step::TenSeconds => 10,
            Step::Minute => 60,
        }
    }

    /// Steps that are kept: 5 minutes, an hour, a day.
    fn kept(self) -> usize {
        match self {
            Step::Second => 300,
            Step::TenSeconds => 360,
            Step::Minute => 1_440,
        }
    }
}

/// What is known of one step. Numbers are cut at the largest of their type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Point {
    /// Changes within the step; `None` if the time before it is unknown.
    pub(crate) counts: Option<[u32; 5]>,
    /// Jobs at its end: waiting, leased, dead.
    pub(crate) levels: [u32; 3],
    /// Of these ready; `None` if it is unknown.
    pub(crate) ready: Option<u32>,
}

/// A part of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HistoryPart {
    pub(crate) step_s: u64,
    /// The beginning of the first step, seconds since the start.
    pub(crate) from_s: u64,
    /// The end of the last one.
    pub(crate) to_s: u64,
    pub(crate) points: Vec<Option<Point>>,
}

/// Steps of one length, the last one perhaps not over.
#[derive(Debug)]
struct Ring {
    step: Step,
    /// The number of the first step here.
    first: u64,
    points: VecDeque<Option<Point>>,
}

/// The counters of something at the last sample.
#[derive(Clone, Copy, Debug)]
struct Before {
    at_s: u64,
    changes: Changes,
}

/// A topic that is followed.
#[derive(Debug)]
struct Followed {
    ring: Ring,
    before: Option<Before>,
    /// When it was asked for last; `None` = never.
    asked_at_s: Option<u64>,
}

/// All rings.
#[derive(Debug)]
pub(super) struct History {
    all: [Ring; 3],
    before: Option<Before>,
    topics: HashMap<TopicName, Followed>,
    /// When the steps of a second were asked for last.
    seconds_asked_at_s: Option<u64>,
}

impl Default for History {
    fn default() -> History {
        let all = Step::ALL.map(|(_, step)| Ring::new(step));
        History { all, before: None, topics: HashMap::new(), seconds_asked_at_s: None }
    }
}

impl Ring {
    fn new(step: Step) -> Ring {
        Ring { step, first: 0, points: VecDeque::new() }
    }

    /// Adds a sample. What was counted over more than two steps belongs to none of them.
    fn note(&mut self, at_s: u64, before: Option<Before>, stats: &TopicStats) {
        let seconds = self.step.seconds();
        let number = at_s / seconds;
        let grown = before
            .filter(|before| at_s.saturating_sub(before.at_s) <= 2 * seconds)
            .map(|before| growth(changes(&stats.counts), before.changes).map(cut));
        let point = self.point_of(number);
        let counts = match (point.counts, grown) {
            (Some(counts), Some(grown)) => {
                Some(std::array::from_fn(|at| counts[at].saturating_add(grown[at])))
            }
            (counts, grown) => counts.or(grown),
        };
        let is_split = stats.delayed + stats.ready == stats.counts.waiting;
        *point = Point {
            counts,
            levels: [stats.counts.waiting, stats.counts.leased, stats.counts.dead].map(cut),
            ready: is_split.then(|| cut(stats.ready)),
        };
    }

    /// The step of this number, made if it is new; steps that were skipped are unknown.
    fn point_of(&mut self, number: u64) -> &mut Point {
        let kept = self.step.kept();
        if self.points.is_empty() || number >= self.first + (self.points.len() + kept) as u64 {
            self.points.clear();
            self.first = number;
        }
        while self.first + (self.points.len() as u64) <= number {
            self.points.push_back(None);
            // One more than is told: the last one may not be over.
            if self.points.len() > kept + 1 {
                self.points.pop_front();
                self.first += 1;
            }
        }
        let at = usize::try_from(number.saturating_sub(self.first)).unwrap_or(0);
        self.points[at.min(kept)].get_or_insert_default()
    }

    /// The steps that are over.
    fn part(&self, now_s: u64) -> HistoryPart {
        let seconds = self.step.seconds();
        let end = now_s / seconds;
        let kept = self.step.kept() as u64;
        // Steps since the last sample are over, too, and unknown.
        let first = self.first.max(end.saturating_sub(kept)).min(end);
        let first = if self.points.is_empty() { end } else { first };
        let at = |number: u64| {
            let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
            self.points.get(index).copied().flatten()
        };
        let points = (first..end).map(at).collect();
        HistoryPart { step_s: seconds, from_s: first * seconds, to_s: end * seconds, points }
    }
}

fn cut(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Followed {
    fn new(asked_at_s: Option<u64>) -> Followed {
        Followed { ring: Ring::new(Step::TenSeconds), before: None, asked_at_s }
    }
}

impl History {
    /// The part of all topics.
    pub(super) fn of_all(&mut self, step: Step, now_s: u64) -> HistoryPart {
        if step == Step::Second {
            self.seconds_asked_at_s = Some(now_s);
        }
        self.all[step as usize].part(now_s)
    }

    /// The part of a topic, which is followed from now on.
    pub(super) fn of_topic(&mut self, topic: &TopicName, now_s: u64) -> HistoryPart {
        self.follow(topic, now_s);
        match self.topics.get(topic) {
            Some(followed) => followed.ring.part(now_s),
            None => Ring::new(Step::TenSeconds).part(now_s),
        }
    }

    /// Somebody asked for this topic: it takes the place of one that was not asked for so lately.
    pub(super) fn follow(&mut self, topic: &TopicName, now_s: u64) {
        if let Some(followed) = self.topics.get_mut(topic) {
            followed.asked_at_s = Some(now_s);
            return;
        }
        if self.topics.len() >= HISTORY_TOPICS_MAX {
            let lately = self.topics.iter().min_by_key(|(_, followed)| followed.asked_at_s);
            if let Some(name) = lately.map(|(name, _)| name.clone()) {
                self.topics.remove(&name);
            }
        }
        self.topics.insert(topic.clone(), Followed::new(Some(now_s)));
    }

    /// Whether somebody looks at steps of a second.
    pub(super) fn wants_seconds(&self, now_s: u64) -> bool {
        self.seconds_asked_at_s.is_some_and(|asked| now_s.saturating_sub(asked) < ASKED_S)
    }

    /// The topics that are followed because somebody asked.
    pub(super) fn asked(&self) -> Vec<TopicName> {
        let asked = self.topics.iter().filter(|(_, followed)| followed.asked_at_s.is_some());
        asked.map(|(name, _)| name.clone()).collect()
    }

    /// Adds a sample of all topics; `each_second` if they come so.
    pub(super) fn note_all(&mut self, at_s: u64, stats: &TopicStats, each_second: bool) {
        for ring in &mut self.all {
            if each_second || ring.step != Step::Second {
                ring.note(at_s, self.before, stats);
            }
        }
        self.before = Some(Before { at_s, changes: changes(&stats.counts) });
    }

    /// Adds a sample of each topic. `first` are the first by name, which are followed while there
    /// is room; `asked` was asked for. Others are forgotten.
    pub(super) fn note_topics(
        &mut self,
        at_s: u64,
        first: &[(TopicName, TopicStats)],
        asked: &[(TopicName, TopicStats)],
    ) {
        let mut before = std::mem::take(&mut self.topics);
        for (name, stats) in asked.iter().chain(first) {
            if self.topics.len() >= HISTORY_TOPICS_MAX || self.topics.contains_key(name) {
                continue;
            }
            let mut followed = before.remove(name).unwrap_or_else(|| Followed::new(None));
            followed.ring.note(at_s, followed.before, stats);
            followed.before = Some(Before { at_s, changes: changes(&stats.counts) });
            self.topics.insert(name.clone(), followed);
        }
        // Somebody has asked for them while the others were read.
        let late = before.into_iter().filter(|(_, followed)| {
            followed.before.is_none() && followed.asked_at_s.is_some_and(|at| at + 10 > at_s)
        });
        let room = HISTORY_TOPICS_MAX.saturating_sub(self.topics.len());
        self.topics.extend(late.take(room));
    }
}

#[cfg(test)]
mod tests;
