//! Dead and done jobs that go: too many of a topic, or there for too long.

use super::{Machine, Origin, Output, job_cost};
use crate::error::Fatal;
use crate::fact::{Cause, Destination, Fact};
use crate::place::{Class, Place};
use crate::time::Now;
use crate::timeline::{Head, Resting, Timeline};
use crate::topic::TopicNo;

/// How long, and how many, jobs of a class are kept.
#[derive(Clone, Copy, Debug)]
struct Keep {
    class: Class,
    /// `None` = for good.
    span_ms: Option<u64>,
    /// `None` = all.
    max: Option<u64>,
}

impl<T: Timeline> Machine<T> {
    /// The settings changed, or are news after a start: look at once.
    pub(crate) fn plan_trim(&mut self, topic: TopicNo) {
        let Some(value) = self.topics.get(topic) else { return };
        let limited = value.settings.dead_ttl_ms.is_some() || value.settings.dead_max.is_some();
        if limited && value.counts.dead > 0 {
            self.dead_alarms.plan(topic, 0);
        }
        if value.counts.done > 0 {
            self.done_alarms.plan(topic, 0);
        }
    }

    /// A job of the topic is done and kept.
    pub(crate) fn plan_trim_done(&mut self, topic: TopicNo, now: Now) {
        let keep_ms = self.topics.get(topic).and_then(|value| value.settings.keep_done_ms);
        self.done_alarms.plan(topic, now.after(keep_ms.unwrap_or(0)));
    }

    /// Removes jobs that are dead, or done, for longer than their topics keep them.
    pub(crate) fn trim_all(
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
        while *budget > 0
            && let Some(topic) = self.done_alarms.pop_due(now)
        {
            *budget -= 1;
            let settings = self.topics.get(topic).map(|value| &value.settings);
            let span_ms = settings.and_then(|settings| settings.keep_done_ms).unwrap_or(0);
            let keep = Keep { class: Class::DONE, span_ms: Some(span_ms), max: None };
            self.trim(topic, keep, now, budget, out)?;
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
        let (span_ms, max) = (value.settings.dead_ttl_ms, value.settings.dead_max);
        if span_ms.is_none() && max.is_none() {
            return Ok(());
        }
        self.trim(topic, Keep { class: Class::DEAD, span_ms, max }, now, budget, out)
    }

    fn plan_trim_of(&mut self, topic: TopicNo, class: Class, at: u64) {
        let alarms =
            if class == Class::DONE { &mut self.done_alarms } else { &mut self.dead_alarms };
        alarms.plan(topic, at);
    }

    fn trim(
        &mut self,
        topic: TopicNo,
        keep: Keep,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        loop {
            let oldest = match self.timeline.oldest(topic, keep.class)? {
                Head::At(oldest) => oldest,
                Head::Empty => return Ok(()),
                Head::Again => {
                    self.plan_trim_of(topic, keep.class, 0);
                    *budget = 0;
                    return Ok(());
                }
            };
            let dead = self.topics.get(topic).map_or(0, |value| value.counts.dead);
            let over = keep.max.is_some_and(|max| dead > max);
            let ends_at = keep.span_ms.map(|span_ms| oldest.due_at.saturating_add(span_ms));
            if !over && ends_at.is_none_or(|at| at > now.steady_ms) {
                if let Some(at) = ends_at {
                    self.plan_trim_of(topic, keep.class, at);
                }
                return Ok(());
            }
            if *budget == 0 {
                self.plan_trim_of(topic, keep.class, 0);
                return Ok(());
            }
            let resting = self.timeline.take(oldest)?;
            *budget = budget.saturating_sub(job_cost(u64::from(resting.job.progress.bytes)));
            self.forget(Origin::Taken, resting, now, out);
        }
    }

    /// Removes a resting job. What is left of the `key_ttl` of a done one goes on as a hold.
    pub(crate) fn forget(
        &mut self,
        origin: fn(Resting) -> Origin,
        resting: Resting,
        now: Now,
        out: &mut Output,
    ) {
        let left = resting.place;
        let held_until = resting.key_held_until().filter(|until| *until > now.steady_ms);
        let to = held_until.map_or(Destination::Gone, |due_at| {
            Destination::Hold(Place { class: Class::HOLD, due_at, ..left })
        });
        let fact = Fact::Move {
            id: left.id,
            topic: left.topic,
            left: Some(left),
            to,
            progress: resting.job.progress.clone(),
            key: held_until.and_then(|_| resting.job.key().cloned()),
            cause: Cause::Trim,
        };
        self.commit(fact, origin(resting), out);
    }
}

impl Resting {
    /// Until when a done job keeps its key taken, steady; `None` = it does not.
    pub(crate) fn key_held_until(&self) -> Option<u64> {
        let ttl_ms = self.job.content.key_ttl_ms;
        let holds = self.place.class == Class::DONE && ttl_ms > 0 && self.job.key().is_some();
        holds.then(|| self.place.due_at.saturating_add(ttl_ms))
    }
}
