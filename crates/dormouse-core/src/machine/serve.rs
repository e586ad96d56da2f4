//! Serving waiting reserves: due jobs go to the reserve that came first.

use super::topics::Topic;
use super::waiters::{WaiterNo, WatchNo};
use super::{Machine, Output, WaitKind, When, answered, job_cost};
use crate::command::Reply;
use crate::error::Fatal;
use crate::op::LeasedJob;
use crate::time::Now;
use crate::timeline::{Next, Timeline};
use crate::topic::TopicNo;

/// How far a look at a watched topic went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looked {
    Whole,
    /// It passed a portion of cancelled jobs, and has to go on.
    Again,
}

/// So often a reserve over many topics waits until the heads of all of them are read. Then it gets
/// what is known: with very many topics they may be forgotten as fast as they are read.
const TRIES_MAX: u32 = 100;

impl<T: Timeline> Machine<T> {
    /// Gives due jobs to waiting reserves, first come, first served.
    pub(crate) fn serve_waiters(
        &mut self,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        self.notice_wall_step(now);
        self.waiters.look_at_due(now);
        while *budget > 0
            && let Some(no) = self.waiters.dirty.pop_front()
        {
            *budget -= 1;
            if let Some(watch) = self.waiters.watches.get_mut(&no) {
                watch.dirty = false;
                if self.serve_watch(no, now, budget, out)? == Looked::Again {
                    // One portion per tick: others have their turn first.
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn serve_watch(
        &mut self,
        no: WatchNo,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<Looked, Fatal> {
        while let Some(watch) = self.waiters.watches.get(&no)
            && let (Some(topic), Some(&first)) = (watch.topic, watch.waiters.first())
        {
            let again_in = match self.offer(topic, now)? {
                Next::Due(_) if *budget == 0 => {
                    self.waiters.look_at(Some(no));
                    return Ok(Looked::Whole);
                }
                Next::Due(_) => {
                    if self.serve_first(first, now, budget, out)? == Looked::Again {
                        self.waiters.look_at(Some(no));
                        return Ok(Looked::Again);
                    }
                    continue;
                }
                Next::In(ms) => Some(now.steady_ms.saturating_add(ms)),
                Next::Blocked => {
                    self.waiters.blocked.push(no);
                    None
                }
                Next::Empty => None,
                Next::Again | Next::Unread => {
                    self.waiters.look_at(Some(no));
                    return Ok(Looked::Again);
                }
            };
            self.waiters.plan(no, again_in);
            return Ok(Looked::Whole);
        }
        Ok(Looked::Whole)
    }

    fn serve_first(
        &mut self,
        no: WaiterNo,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<Looked, Fatal> {
        *budget = budget.saturating_sub(self.waiters.cost(no));
        let Some(waiter) = self.waiters.waiting.get_mut(&no) else { return Ok(Looked::Whole) };
        waiter.tries += 1;
        let is_patient = waiter.tries < TRIES_MAX;
        let WaitKind::Reserve { terms, watches } = &waiter.kind else { return Ok(Looked::Whole) };
        let (terms, watches) = (*terms, watches.clone());
        if terms.session.is_some_and(|session| !self.sessions.is_open(session)) {
            self.answer_with_nothing(no, out);
            return Ok(Looked::Whole);
        }
        let watch_topic = |watch| self.waiters.watches.get(watch).and_then(|watch| watch.topic);
        let topics: Vec<TopicNo> = watches.iter().filter_map(watch_topic).collect();
        let answer = answered(self.reserve_now(now, &topics, terms, is_patient, out))?;
        if let Ok(outcome) = &answer {
            *budget = budget.saturating_sub(outcome.passed);
            if outcome.is_unread {
                return Ok(Looked::Again);
            }
            if outcome.jobs.is_empty() {
                // What looked due waits for room in its group, and so does this request.
                return Ok(Looked::Whole);
            }
            let cost = |job: &LeasedJob| job_cost(job.bytes());
            *budget = budget.saturating_sub(outcome.jobs.iter().map(cost).sum());
        }
        if let Some((ticket, _)) = self.unpark(no) {
            let jobs = answer.map(|outcome| Reply::Jobs(outcome.jobs));
            out.answers.push((ticket, jobs, When::Prompt));
        }
        Ok(Looked::Whole)
    }

    /// The topic's offer; nothing while it is paused or one of its limits is reached.
    pub(crate) fn offer(&mut self, topic: TopicNo, now: Now) -> Result<Next, Fatal> {
        let stopped = |value: &Topic| value.paused(now).or_else(|| value.held(now));
        match self.topics.get(topic).and_then(stopped) {
            Some(None) => Ok(Next::Empty),
            Some(Some(ms)) => Ok(Next::In(ms)),
            // A job that is parked now must not get the lane of others.
            None if self.groups.is_learning(topic) => Ok(Next::Again),
            None => self.timeline.next(topic, now),
        }
    }

    /// Jobs due by the calendar come due earlier when the wall clock is set forward.
    fn notice_wall_step(&mut self, now: Now) {
        let offset_ms = i128::from(now.wall_ms) - i128::from(now.steady_ms);
        let before = *self.wall_offset_ms.get_or_insert(offset_ms);
        // Both clocks are rounded down, so they can differ by one without a step.
        if before.abs_diff(offset_ms) > 1 {
            self.wall_offset_ms = Some(offset_ms);
            self.waiters.look_at_all();
            self.groups.drop_candidates();
            self.schedules.line.make_all_due();
            self.deadlines.line.make_all_due();
        }
    }
}
