//! Key holds that are over.
//!
//! A hold whose time has come is free whether it still rests or not, so removing it is no fact: a
//! replay that finds it again removes it again. It only must not rest forever.

use super::Machine;
use crate::error::Fatal;
use crate::limits::HOLD_SWEEP_MS;
use crate::place::Class;
use crate::time::Now;
use crate::timeline::{Head, Timeline};
use crate::topic::TopicNo;

impl<T: Timeline> Machine<T> {
    /// Removes holds that are over, of each topic now and then.
    pub(crate) fn sweep_holds(&mut self, now: Now, budget: &mut usize) -> Result<(), Fatal> {
        while *budget > 0
            && let Some(topic) = self.hold_alarms.pop_due(now)
        {
            *budget -= 1;
            if self.topics.get(topic).is_none() {
                continue;
            }
            loop {
                let oldest = match self.timeline.oldest(topic, Class::HOLD)? {
                    Head::At(oldest) => oldest,
                    Head::Empty => break,
                    Head::Again => {
                        self.hold_alarms.plan(topic, 0);
                        *budget = 0;
                        break;
                    }
                };
                if oldest.due_at > now.steady_ms {
                    self.plan_sweep(topic, oldest.due_at);
                    break;
                }
                if *budget == 0 {
                    self.hold_alarms.plan(topic, 0);
                    break;
                }
                *budget -= 1;
                self.timeline.take(oldest)?;
            }
        }
        Ok(())
    }

    /// A hold of the topic ends then. It may rest for a while longer, so that many are removed at
    /// a time.
    pub(crate) fn plan_sweep(&mut self, topic: TopicNo, ends_at: u64) {
        self.hold_alarms.plan(topic, ends_at.saturating_add(HOLD_SWEEP_MS));
    }
}
