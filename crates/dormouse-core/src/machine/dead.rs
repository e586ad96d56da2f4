//! Dead jobs that go: too many of a topic, or dead for too long.

use super::{Machine, Origin, Output, job_cost};
use crate::error::Fatal;
use crate::fact::{Cause, Destination, Fact};
use crate::place::Class;
use crate::time::Now;
use crate::timeline::{Head, Timeline};
use crate::topic::TopicNo;

impl<T: Timeline> Machine<T> {
    /// The settings changed, or are news after a start: look at once.
    pub(crate) fn plan_trim(&mut self, topic: TopicNo) {
        let Some(value) = self.topics.get(topic) else { return };
        let limited = value.settings.dead_ttl_ms.is_some() || value.settings.dead_max.is_some();
        if limited && value.counts.dead > 0 {
            self.dead_alarms.plan(topic, 0);
        }
    }

    /// Removes jobs that are dead for longer than `dead_ttl`, in all topics.
    pub(crate) fn trim_all_dead(
        &mut self,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        while *budget > 0
            && let Some(topic) = self.dead_alarms.pop_due(now)
        {
            *budget -= 1;
            self.trim_dead(topic, now, budget, out)?;
        }
        Ok(())
    }

    /// Removes the oldest dead jobs of a topic that its settings do not keep, and plans the next
    /// look.
    pub(crate) fn trim_dead(
        &mut self,
        topic: TopicNo,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        let Some(value) = self.topics.get(topic) else { return Ok(()) };
        let (ttl_ms, max) = (value.settings.dead_ttl_ms, value.settings.dead_max);
        if ttl_ms.is_none() && max.is_none() {
            return Ok(());
        }
        loop {
            let oldest = match self.timeline.oldest(topic, Class::DEAD)? {
                Head::At(oldest) => oldest,
                Head::Empty => return Ok(()),
                Head::Again => {
                    self.dead_alarms.plan(topic, 0);
                    *budget = 0;
                    return Ok(());
                }
            };
            let dead = self.topics.get(topic).map_or(0, |value| value.counts.dead);
            let over = max.is_some_and(|max| dead > max);
            let ends_at = ttl_ms.map(|ttl_ms| oldest.due_at.saturating_add(ttl_ms));
            if !over && ends_at.is_none_or(|at| at > now.steady_ms) {
                if let Some(at) = ends_at {
                    self.dead_alarms.plan(topic, at);
                }
                return Ok(());
            }
            if *budget == 0 {
                self.dead_alarms.plan(topic, 0);
                return Ok(());
            }
            let resting = self.timeline.take(oldest)?;
            *budget = budget.saturating_sub(job_cost(u64::from(resting.job.progress.bytes)));
            let fact = Fact::Move {
                id: oldest.id,
                topic,
                left: Some(oldest),
                to: Destination::Gone,
                progress: resting.job.progress.clone(),
                key: None,
                cause: Cause::Trim,
            };
            self.commit(fact, Origin::Taken(resting), out);
        }
    }
}
