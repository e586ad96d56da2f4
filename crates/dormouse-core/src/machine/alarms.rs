//! When to look at which topic for something that time brings.

use std::collections::BTreeSet;

use crate::Map;
use crate::time::Now;
use crate::topic::TopicNo;

/// At most one planned look per topic, the earliest that was asked for.
#[derive(Debug, Default)]
pub(crate) struct TopicAlarms {
    in_order: BTreeSet<(u64, TopicNo)>,
    planned: Map<TopicNo, u64>,
    /// Looks that are due before their instant, because the wall clock was stepped.
    stepped: BTreeSet<(u64, TopicNo)>,
}

impl TopicAlarms {
    /// The steady instant of the first look.
    pub(crate) fn next(&self) -> Option<u64> {
        if !self.stepped.is_empty() {
            return Some(0);
        }
        self.in_order.first().map(|&(at, _)| at)
    }

    /// All planned looks are due: the wall clock was stepped.
    pub(crate) fn make_all_due(&mut self) {
        if self.stepped.is_empty() {
            std::mem::swap(&mut self.stepped, &mut self.in_order);
        } else {
            self.stepped.append(&mut self.in_order);
        }
    }

    /// Look at the topic at this steady instant, or before if that is planned already.
    pub(crate) fn plan(&mut self, topic: TopicNo, at: u64) {
        match self.planned.get(&topic) {
            Some(&before) if before <= at => return,
            Some(&after) => {
                self.in_order.remove(&(after, topic));
                self.stepped.remove(&(after, topic));
            }
            None => {}
        }
        self.planned.insert(topic, at);
        self.in_order.insert((at, topic));
    }

    /// Whether there may be one to look at before this topic, if that is due at this instant.
    pub(crate) fn has_before(&self, at: u64, topic: TopicNo) -> bool {
        !self.stepped.is_empty() || self.in_order.first().is_some_and(|first| *first < (at, topic))
    }

    /// A topic whose look is due; it is planned no more.
    pub(crate) fn pop_due(&mut self, now: Now) -> Option<TopicNo> {
        let due = self.in_order.first().filter(|(at, _)| *at <= now.steady_ms).is_some();
        // After a step nobody knows when they are due: perhaps before all others.
        let first = match self.stepped.pop_first() {
            None if due => self.in_order.pop_first(),
            stepped => stepped,
        };
        let (_, topic) = first?;
        self.planned.remove(&topic);
        Some(topic)
    }
}
