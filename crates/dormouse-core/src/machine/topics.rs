//! The topics alive: numbers, names, settings, counts, and when an empty one may vanish.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::{Machine, Origin, Output};
use crate::error::{Code, Error};
use crate::fact::Fact;
use crate::image::{Counts, TopicImage};
use crate::limits::{TOPIC_LINGER_MS, TOPICS_MAX};
use crate::machine::waiters::WatchNo;
use crate::rate::Pace;
use crate::snapshot_map::SnapshotMap;
use crate::time::Now;
use crate::timeline::Timeline;
use crate::topic::{Pause, Settings, TopicName, TopicNo};

/// One topic.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) name: TopicName,
    pub(crate) settings: Settings,
    pub(crate) pause: Option<Pause>,
    /// When the last hold on one of its keys ends, steady.
    pub(crate) holds_until: u64,
    pub(crate) counts: Counts,
    /// Schedules that put jobs into it.
    pub(crate) schedules: u64,
    /// Deadlines of its jobs may rest beside it.
    pub(crate) has_deadlines: bool,
    /// Bytes of its leased jobs.
    pub(crate) leased_bytes: u64,
    /// How far its rate is used.
    pub(crate) pace: Pace,
    /// Since when its groups' rate is known: before, all of it may have been used.
    pub(crate) groups_paced_from: Option<u64>,
    /// Jobs may be parked.
    pub(crate) has_parked: bool,
    /// Jobs with groups that were put ready into the line since it was last empty, less those that
    /// were taken: about as many as there are.
    pub(crate) grouped_line: u64,
    /// Reserves wait on it.
    pub(crate) watch: Option<WatchNo>,
    idle: Idle,
}

/// Whether a topic is on its way to being looked at for vanishing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Idle {
    No,
    Planned,
    /// It was used and became unused again since that was planned.
    Renewed,
}

impl Topic {
    pub(crate) fn new(name: TopicName) -> Topic {
        Topic {
            name,
            settings: Settings::default(),
            pause: None,
            holds_until: 0,
            counts: Counts::default(),
            schedules: 0,
            has_deadlines: false,
            leased_bytes: 0,
            pace: Pace::default(),
            groups_paced_from: None,
            has_parked: false,
            grouped_line: 0,
            watch: None,
            idle: Idle::No,
        }
    }

    /// The topic as a checkpoint has it.
    pub(crate) fn image(&self, topic: TopicNo) -> TopicImage {
        TopicImage {
            topic,
            name: self.name.clone(),
            settings: self.settings.clone(),
            pause: self.pause,
            holds_until: self.holds_until,
            counts: self.counts,
            schedules: self.schedules,
            has_deadlines: self.has_deadlines,
            has_parked: self.has_parked,
        }
    }

    /// Jobs in any state but done.
    pub(crate) fn jobs(&self) -> u64 {
        self.counts.waiting + self.counts.leased + self.counts.dead
    }

    /// How long reserve gives nothing from it; `Some(None)` = until resumed.
    pub(crate) fn paused(&self, now: Now) -> Option<Option<u64>> {
        match self.pause? {
            Pause::Open => Some(None),
            Pause::Until(until) if until > now.steady_ms => Some(Some(until - now.steady_ms)),
            Pause::Until(_) => None,
        }
    }

    /// From which steady instant on nothing speaks for the topic; `None` = something does for good.
    fn unused_from(&self) -> Option<u64> {
        let pause_ends = match self.pause {
            None => 0,
            Some(Pause::Until(until)) => until,
            Some(Pause::Open) => return None,
        };
        let used = self.jobs() > 0
            || self.counts.done > 0
            || self.schedules > 0
            || self.watch.is_some()
            || self.settings != Settings::default();
        (!used).then_some(self.holds_until.max(pause_ends))
    }

    /// It has vanished for callers, though its number may linger.
    pub(crate) fn is_vanished(&self, now: Now) -> bool {
        self.unused_from().is_some_and(|from| from <= now.steady_ms)
    }
}

/// All topics alive.
#[derive(Debug)]
pub(crate) struct Topics {
    by_no: SnapshotMap<TopicNo, Topic>,
    by_name: SnapshotMap<TopicName, TopicNo>,
    in_order: BTreeMap<TopicName, TopicNo>,
    /// Those that are pushed.
    pushed: BTreeMap<TopicName, TopicNo>,
    /// How often `pushed`, or a push, changed since the start.
    push_revision: u64,
    /// The name looked up last: batches mostly name one topic.
    last: Option<(TopicName, TopicNo)>,
    pub(crate) next_no: u32,
    /// Running totals of the topics that have vanished.
    pub(crate) gone: Counts,
    /// Became unused since the last tick.
    emptied: Vec<TopicNo>,
    /// When to look whether they are still unused.
    idle: BTreeSet<(u64, TopicNo)>,
}

/// Topics that have vanished for callers, as far as they were counted.
#[derive(Debug, Default)]
pub(crate) struct VanishedCount {
    pub(crate) count: usize,
    after: Option<(u64, TopicNo)>,
}

impl Default for Topics {
    fn default() -> Topics {
        Topics {
            by_no: SnapshotMap::default(),
            by_name: SnapshotMap::default(),
            in_order: BTreeMap::new(),
            pushed: BTreeMap::new(),
            push_revision: 1,
            last: None,
            next_no: 1,
            gone: Counts::default(),
            emptied: Vec::new(),
            idle: BTreeSet::new(),
        }
    }
}

impl Topics {
    pub(crate) fn len(&self) -> usize {
        self.by_no.len()
    }

    /// Counts topics that have vanished for callers: they are scheduled for a look. Passes at
    /// most `max` of those; tells whether it was all.
    pub(crate) fn count_vanished(&self, now: Now, count: &mut VanishedCount, max: usize) -> bool {
        let is_vanished =
            |topic: &TopicNo| self.by_no.get(topic).is_some_and(|value| value.is_vanished(now));
        let from = count.after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut idle = self.idle.range((from, Bound::Unbounded));
        for planned in idle.by_ref().take(max) {
            count.after = Some(*planned);
            count.count += usize::from(is_vanished(&planned.1));
        }
        if idle.next().is_some() {
            return false;
        }
        count.count += self.emptied.iter().filter(|topic| is_vanished(topic)).count();
        true
    }

    pub(crate) fn get(&self, topic: TopicNo) -> Option<&Topic> {
        self.by_no.get(&topic)
    }

    pub(crate) fn get_mut(&mut self, topic: TopicNo) -> Option<&mut Topic> {
        self.by_no.get_mut(&topic)
    }

    /// The number of this name.
    pub(crate) fn find(&mut self, name: &TopicName) -> Option<TopicNo> {
        if let Some((last, topic)) = &self.last
            && last == name
        {
            return Some(*topic);
        }
        let topic = *self.by_name.get(name)?;
        self.last = Some((name.clone(), topic));
        Some(topic)
    }

    /// The number of this name. As `find`, but remembers nothing.
    pub(crate) fn find_exact(&self, name: &TopicName) -> Option<TopicNo> {
        self.by_name.get(name).copied()
    }

    /// The number of this name, if anybody can see the topic.
    pub(crate) fn find_visible(&mut self, name: &TopicName, now: Now) -> Option<TopicNo> {
        self.find(name).filter(|&topic| self.get(topic).is_some_and(|t| !t.is_vanished(now)))
    }

    pub(crate) fn insert(&mut self, topic: TopicNo, value: Topic) {
        self.next_no = self.next_no.max(topic.0.saturating_add(1));
        self.by_name.insert(value.name.clone(), topic);
        self.in_order.insert(value.name.clone(), topic);
        if value.settings.push.is_some() {
            self.pushed.insert(value.name.clone(), topic);
        }
        self.by_no.insert(topic, value);
    }

    pub(crate) fn remove(&mut self, topic: TopicNo) -> Option<Topic> {
        let value = self.by_no.remove(&topic)?;
        self.by_name.remove(&value.name);
        self.in_order.remove(&value.name);
        self.pushed.remove(&value.name);
        self.last = None;
        Some(value)
    }

    /// Topics in the order of their names, those after the given one.
    pub(crate) fn after(&self, name: Option<&TopicName>) -> impl Iterator<Item = TopicNo> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.in_order.range::<TopicName, _>((from, Bound::Unbounded)).map(|(_, &topic)| topic)
    }

    /// Applies: the push of this topic changed.
    pub(crate) fn note_push(&mut self, topic: TopicNo) {
        let Some(value) = self.by_no.get(&topic) else { return };
        match value.settings.push {
            Some(_) => self.pushed.insert(value.name.clone(), topic),
            None => self.pushed.remove(&value.name),
        };
        self.push_revision += 1;
    }

    /// How many topics are pushed.
    pub(crate) fn pushed_len(&self) -> usize {
        self.pushed.len()
    }

    /// Changes with every change of a push, within one life of the process.
    pub(crate) fn push_revision(&self) -> u64 {
        self.push_revision
    }

    /// Topics that are pushed, in the order of their names, those after the given one.
    pub(crate) fn pushed_after(&self, name: Option<&TopicName>) -> impl Iterator<Item = &Topic> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        let pushed = self.pushed.range::<TopicName, _>((from, Bound::Unbounded));
        pushed.filter_map(|(_, topic)| self.by_no.get(topic))
    }

    /// All topics as they are now.
    pub(crate) fn snapshot(&mut self) -> SnapshotMap<TopicNo, Topic> {
        self.by_no.snapshot()
    }

    /// All numbers, ascending.
    pub(crate) fn numbers(&self) -> Vec<TopicNo> {
        let mut numbers: Vec<_> = self.by_no.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// Something that spoke for the topic went.
    pub(crate) fn note_unused(&mut self, topic: TopicNo) {
        let Some(value) = self.by_no.get_mut(&topic) else { return };
        if value.unused_from().is_none() {
            return;
        }
        if value.idle == Idle::No {
            value.idle = Idle::Planned;
            self.emptied.push(topic);
        } else {
            value.idle = Idle::Renewed;
        }
    }

    /// Forgets when to look at topics for vanishing: all are about to be looked at.
    pub(crate) fn clear_idle(&mut self) {
        self.emptied.clear();
        self.idle.clear();
    }

    /// When topics must be looked at for vanishing.
    pub(crate) fn next_idle(&self) -> Option<u64> {
        if self.emptied.is_empty() { self.idle.first().map(|&(at, _)| at) } else { Some(0) }
    }
}

impl<T: Timeline> Machine<T> {
    /// The topic of this name, brought to life if need be.
    pub(crate) fn topic_or_birth(
        &mut self,
        name: &TopicName,
        out: &mut Output,
    ) -> Result<TopicNo, Error> {
        if let Some(topic) = self.topics.find(name) {
            return Ok(topic);
        }
        self.check_birth(name, 1)?;
        let topic = TopicNo(self.topics.next_no);
        self.commit(Fact::TopicBorn { topic, name: name.clone() }, Origin::Live, out);
        Ok(topic)
    }

    /// Whether so many topics can be born, the first of this name.
    pub(crate) fn check_birth(&self, name: &TopicName, count: usize) -> Result<(), Error> {
        let last_no = self.topics.next_no.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        if self.topics.len() + count > TOPICS_MAX || last_no > TopicNo::MAX.0 + 1 {
            return Err(Error::new(
                Code::Full,
                format!("topic {name} would be one more than {TOPICS_MAX}; empty or unset others"),
            ));
        }
        Ok(())
    }

    /// Lets topics vanish that have been unused for a while.
    pub(crate) fn let_topics_vanish(&mut self, now: Now, budget: &mut usize, out: &mut Output) {
        let later = now.steady_ms.saturating_add(TOPIC_LINGER_MS);
        for topic in std::mem::take(&mut self.topics.emptied) {
            self.topics.idle.insert((later, topic));
        }
        while let Some(&(at, topic)) = self.topics.idle.first()
            && at <= now.steady_ms
            && *budget > 0
        {
            *budget -= 1;
            self.topics.idle.pop_first();
            match self.topics.by_no.get_mut(&topic) {
                Some(value) if value.idle == Idle::Renewed => {
                    value.idle = Idle::Planned;
                    self.topics.idle.insert((later, topic));
                }
                _ => self.vanish_if_unused(topic, now, out),
            }
        }
    }

    /// Lets a topic vanish, or plans to look again when its last hold or its pause ends.
    pub(crate) fn vanish_if_unused(&mut self, topic: TopicNo, now: Now, out: &mut Output) {
        let Some(value) = self.topics.by_no.get_mut(&topic) else { return };
        match value.unused_from() {
            Some(from) if from <= now.steady_ms => {
                self.commit(Fact::TopicGone { topic }, Origin::Live, out);
            }
            Some(from) => {
                value.idle = Idle::Planned;
                self.topics.idle.insert((from, topic));
            }
            None => value.idle = Idle::No,
        }
    }
}
