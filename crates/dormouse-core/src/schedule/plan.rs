//! The next action of a schedule: give a tick, wait for one, or wait for its job.

use super::{Catchup, Overlap, Parked, Schedule, ScheduleName};
use crate::limits::{SCHEDULE_RETRY_MS_MAX, SCHEDULE_RETRY_MS_MIN};
use crate::tick::Rule;
use crate::topic::Pause;

/// The job of a tick, to be put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickPut {
    /// The tick, on the clock of the rule.
    pub tick_ms: u64,
    /// When its job is due, on the same clock.
    pub due_ms: u64,
    /// Ticks since the one before it that got no job.
    pub missed: u64,
}

/// The next action of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing before this instant of its clock.
    Wait(u64),
    /// Put this job; the tick is accounted for. Then plan again.
    Give(TickPut),
    /// Nothing until its last job has ended, or it is resumed; `Parked` says which.
    Park,
    /// It has ended.
    End,
}

/// Where a schedule rests until it has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Until this instant of its clock, which may be past: then a tick is to be given.
    Until(u64),
    /// Until its last job has ended, or it is resumed.
    Parked,
    /// Nowhere: it has ended.
    Ended,
}

impl Schedule {
    /// Where it rests, without giving a tick.
    pub fn rest(&mut self, name: &ScheduleName, rule: &Rule, now_ms: u64, is_alive: bool) -> Rest {
        let unplanned = self.clone();
        match self.plan(name, rule, now_ms, is_alive) {
            Plan::Wait(due_ms) => Rest::Until(due_ms),
            Plan::Give(tick) => {
                *self = unplanned;
                Rest::Until(tick.due_ms)
            }
            Plan::Park => Rest::Parked,
            Plan::End => Rest::Ended,
        }
    }

    /// Decides, and accounts for the ticks that passed. `is_alive` says whether the last job waits,
    /// is leased, or is between two attempts.
    pub fn plan(&mut self, name: &ScheduleName, rule: &Rule, now_ms: u64, is_alive: bool) -> Plan {
        let was_busy = self.progress.parked == Parked::Busy;
        self.progress.parked = Parked::No;
        match self.progress.pause {
            Some(Pause::Open) => return self.park(Parked::Paused),
            Some(Pause::Until(end_ms)) if end_ms > now_ms => {
                let next_ms = self.next_after(rule, self.progress.last_ms.max(end_ms));
                let plan = next_ms.map(|tick_ms| Plan::Wait(self.due_ms(name, rule, tick_ms)));
                return plan.unwrap_or_else(|| self.end(is_alive));
            }
            Some(Pause::Until(end_ms)) => self.end_pause(rule, end_ms),
            None => {}
        }
        if was_busy && !is_alive {
            self.note_end(name, rule, now_ms);
        }
        self.plan_tick(name, rule, now_ms, is_alive, was_busy)
    }

    fn plan_tick(
        &mut self,
        name: &ScheduleName,
        rule: &Rule,
        now_ms: u64,
        is_alive: bool,
        was_busy: bool,
    ) -> Plan {
        let is_gap = self.definition.is_gap();
        let waits = is_gap || matches!(self.definition.overlap, Overlap::Skip | Overlap::Wait);
        self.miss_late(name, rule, now_ms);
        let Some(first_ms) = self.next_tick(rule) else { return self.end(is_alive) };
        let first_due_ms = self.due_ms(name, rule, first_ms);
        let is_due = first_due_ms <= now_ms;
        if is_alive && waits && (is_due || is_gap) {
            return self.park(Parked::Busy);
        }
        if !is_due {
            return Plan::Wait(first_due_ms);
        }
        let tick_ms = match self.definition.catchup {
            Catchup::All => first_ms,
            Catchup::One => self.latest_due(name, rule, now_ms).unwrap_or(first_ms),
        };
        let passed = self.count_until(rule, tick_ms).saturating_sub(1);
        let counts = &mut self.progress.counts;
        let passed_as = if was_busy { &mut counts.overlapped } else { &mut counts.missed };
        *passed_as += passed;
        counts.given += 1;
        let without_job = counts.without_job();
        let missed = without_job - std::mem::replace(&mut self.progress.without_job, without_job);
        self.progress.last_ms = tick_ms;
        Plan::Give(TickPut { tick_ms, due_ms: self.due_ms(name, rule, tick_ms), missed })
    }

    /// The last job of a schedule that waited for it has ended.
    fn note_end(&mut self, name: &ScheduleName, rule: &Rule, now_ms: u64) {
        if self.definition.is_gap() {
            self.progress.last_ms = now_ms.max(self.progress.last_ms);
        } else if self.definition.overlap != Overlap::Wait
            && let Some(latest_ms) = self.latest_due(name, rule, now_ms)
        {
            self.progress.counts.overlapped += self.count_until(rule, latest_ms);
            self.progress.last_ms = latest_ms;
        }
    }

    /// Ticks later than `late_max` are missed.
    fn miss_late(&mut self, name: &ScheduleName, rule: &Rule, now_ms: u64) {
        let Some(late_max_ms) = self.definition.late_max_ms else { return };
        let Some(before_ms) = now_ms.checked_sub(late_max_ms.saturating_add(1)) else { return };
        if let Some(tick_ms) = self.latest_due(name, rule, before_ms) {
            self.progress.counts.missed += self.count_until(rule, tick_ms);
            // The next of a gap counts from now: nothing has run since.
            self.progress.last_ms = if self.definition.is_gap() { now_ms } else { tick_ms };
        }
    }

    /// Ticks of a pause that is over are skipped.
    fn end_pause(&mut self, rule: &Rule, end_ms: u64) {
        self.progress.pause = None;
        if self.definition.is_gap() {
            // The next counts from here, whether or not one would have come.
            self.progress.last_ms = self.progress.last_ms.max(end_ms);
            return;
        }
        self.pass_until(rule, end_ms, |schedule| &mut schedule.progress.counts.skipped);
    }

    /// Accounts for all ticks up to an instant.
    fn pass_until(
        &mut self,
        rule: &Rule,
        until_ms: u64,
        passed_as: impl FnOnce(&mut Schedule) -> &mut u64,
    ) {
        if until_ms <= self.progress.last_ms {
            return;
        }
        let passed = self.count_until(rule, until_ms);
        *passed_as(self) += passed;
        self.progress.last_ms = until_ms;
    }

    fn park(&mut self, parked: Parked) -> Plan {
        self.progress.parked = parked;
        Plan::Park
    }

    /// There is no further tick: it goes with its last job.
    fn end(&mut self, is_alive: bool) -> Plan {
        if is_alive { self.park(Parked::Busy) } else { Plan::End }
    }

    /// In how many ms a tick is tried again whose job was refused: the later it is, the longer.
    pub fn retry_ms(&self, rule: &Rule, now_ms: u64) -> u64 {
        let late_ms = now_ms.saturating_sub(self.next_tick(rule).unwrap_or(now_ms));
        (late_ms / 8).clamp(SCHEDULE_RETRY_MS_MIN, SCHEDULE_RETRY_MS_MAX)
    }

    /// The next tick that is not accounted for.
    pub fn next_tick(&self, rule: &Rule) -> Option<u64> {
        let from_ms = match self.progress.pause {
            Some(Pause::Until(end_ms)) => self.progress.last_ms.max(end_ms),
            Some(Pause::Open) | None => self.progress.last_ms,
        };
        self.next_after(rule, from_ms)
    }

    /// The next ticks that are not accounted for.
    pub fn next_ticks(&self, rule: &Rule, limit: usize) -> Vec<u64> {
        let next = |tick_ms: &u64| self.next_after(rule, *tick_ms);
        std::iter::successors(self.next_tick(rule), next).take(limit).collect()
    }

    fn next_after(&self, rule: &Rule, after_ms: u64) -> Option<u64> {
        let given = self.progress.counts.given;
        if self.definition.ticks_max.is_some_and(|max| given >= max) {
            return None;
        }
        let next_ms = rule.next(after_ms)?;
        self.progress.end_ms.is_none_or(|end_ms| next_ms <= end_ms).then_some(next_ms)
    }

    /// The number of ticks up to an instant that are not accounted for.
    pub(super) fn count_until(&self, rule: &Rule, until_ms: u64) -> u64 {
        let until_ms = self.progress.end_ms.map_or(until_ms, |end_ms| until_ms.min(end_ms));
        rule.count(self.progress.last_ms, until_ms)
    }

    /// The latest tick, not accounted for, whose job is due by an instant.
    fn latest_due(&self, name: &ScheduleName, rule: &Rule, at_ms: u64) -> Option<u64> {
        let last_ms = self.progress.last_ms;
        let until_ms = self.progress.end_ms.map_or(at_ms, |end_ms| at_ms.min(end_ms));
        let tick_ms = rule.previous(last_ms, until_ms)?;
        if self.due_ms(name, rule, tick_ms) <= at_ms {
            return Some(tick_ms);
        }
        // The job of the tick before is due before this tick.
        rule.previous(last_ms, tick_ms.checked_sub(1)?)
    }

    /// When the job of a tick is due: so much later by jitter, but before the next tick.
    pub(crate) fn due_ms(&self, name: &ScheduleName, rule: &Rule, tick_ms: u64) -> u64 {
        let jitter_ms = self.definition.recurrence.jitter_ms;
        if jitter_ms == 0 {
            return tick_ms;
        }
        let way_ms = rule.next(tick_ms).map_or(u64::MAX, |next_ms| next_ms - tick_ms);
        tick_ms + hash(name, tick_ms) % jitter_ms.min(way_ms).max(1)
    }
}

/// The same on every backend and after every start.
fn hash(name: &ScheduleName, tick_ms: u64) -> u64 {
    let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let of_name = name.as_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, fnv);
    crate::backoff::mix(of_name ^ tick_ms)
}

/// Requests that change how far a schedule has come.
impl Schedule {
    /// No ticks until then. One that waits for the job before it is given up, too.
    pub fn pause(&mut self, pause: Pause, rule: &Rule, now_ms: u64) {
        self.pass_overlapped(rule, now_ms);
        self.progress.pause = Some(pause);
    }

    /// Accounts for the ticks that passed while the job before lived, if it waits for that.
    fn pass_overlapped(&mut self, rule: &Rule, now_ms: u64) {
        if self.progress.parked == Parked::Busy && !self.definition.is_gap() {
            self.pass_until(rule, now_ms, |schedule| &mut schedule.progress.counts.overlapped);
        }
    }

    /// As it would be if it were asked to account for all that has passed by now.
    pub(crate) fn accounted(mut self, rule: &Rule, now_ms: u64) -> Schedule {
        match self.progress.pause {
            Some(Pause::Open) if !self.definition.is_gap() => {
                self.pass_until(rule, now_ms, |schedule| &mut schedule.progress.counts.skipped);
            }
            None if self.definition.overlap == Overlap::Skip => self.pass_overlapped(rule, now_ms),
            _ => {}
        }
        self
    }

    /// Ends a pause: its ticks are skipped.
    pub fn resume(&mut self, rule: &Rule, now_ms: u64) {
        let Some(pause) = self.progress.pause else { return };
        let end_ms = match pause {
            Pause::Until(end_ms) => end_ms.min(now_ms),
            Pause::Open => now_ms,
        };
        self.end_pause(rule, end_ms);
    }

    /// The next tick is skipped; of a schedule that waits for the job before, the first after now.
    /// Gives it, if there is one.
    pub fn skip(&mut self, rule: &Rule, now_ms: u64) -> Option<u64> {
        self.pass_overlapped(rule, now_ms);
        let tick_ms = self.next_tick(rule)?;
        self.progress.counts.skipped += self.count_until(rule, tick_ms);
        self.progress.last_ms = tick_ms;
        Some(tick_ms)
    }

    /// Ticks that were still to be given are missed: the next is the first after now.
    pub fn replan(&mut self, rule: &Rule, now_ms: u64) {
        self.pass_until(rule, now_ms, |schedule| &mut schedule.progress.counts.missed);
    }
}
