//! When to look at which topic for something that ends with time.

use std::collections::BTreeSet;

use crate::Map;
use crate::time::Now;
use crate::topic::TopicNo;

/// At most one planned look per topic, the earliest that was asked for.
#[derive(Debug, Default)]
pub(crate) struct TopicSchedule {
    in_order: BTreeSet<(u64, TopicNo)>,
    planned: Map<TopicNo, u64>,
}

impl TopicSchedule {
    /// The steady instant of the first look.
    pub(crate) fn next(&self) -> Option<u64> {
        self.in_order.first().map(|&(at, _)| at)
    }

    /// Look at the topic at this steady instant, or before if that is planned already.
    pub(crate) fn plan(&mut self, topic: TopicNo, at: u64) {
        match self.planned.get(&topic) {
            Some(&before) if before <= at => return,
            Some(&after) => {
                self.in_order.remove(&(after, topic));
            }
            None => {}
        }
        self.planned.insert(topic, at);
        self.in_order.insert((at, topic));
    }

    /// A topic whose look is due; it is planned no more.
    pub(crate) fn pop_due(&mut self, now: Now) -> Option<TopicNo> {
        let &(at, topic) = self.in_order.first()?;
        if at > now.steady_ms {
            return None;
        }
        self.in_order.pop_first();
        self.planned.remove(&topic);
        Some(topic)
    }
}
