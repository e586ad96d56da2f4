//! When the ticks of a partition's schedules are given, and all else is looked after that happens
//! by itself: deadlines, dead letters, done jobs. What is due is known from replies: the first
//! entry after those that a portion gave, what this server wrote itself, and what a script found.
//! Other servers write, too, so every partition that has any of these is looked at every few
//! seconds.

use std::time::Duration;

use super::{Now, PartitionNo, Request, Scheduler, WakeAt};

/// How often a partition with schedules is looked at, whatever is known.
const RECHECK: Duration = Duration::from_secs(5);
/// So many partitions are looked at in that time; with more of them it is longer.
const RECHECKED_MAX: u32 = 1_000;
/// How long nothing is tried after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// What is known of the schedules of a partition.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    /// It has schedules, or other things to look after.
    is_ticking: bool,
    /// A portion is being given.
    is_giving: bool,
    /// When the first entry is due, by Redis' clock.
    next_at: Option<u64>,
    /// When it is looked at in any case.
    recheck_at: Option<Duration>,
    /// After a failure, nothing is done before this instant.
    not_before: Option<Duration>,
}

/// What a portion has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TicksReport {
    /// The partition has schedules, or other things to look after.
    pub(crate) is_watched: bool,
    /// When the first of them is due, by Redis' clock; `None` = unknown.
    pub(crate) next_at: Option<u64>,
    /// A job was refused: wait before the next attempt.
    pub(crate) is_refused: bool,
}

impl Ticks {
    /// Whether a portion is to be given now; it is, then.
    pub(super) fn begin(&mut self, now: Now) -> bool {
        let is_due = self.next_at.is_some_and(|at_ms| at_ms <= now.redis_ms)
            || self.recheck_at.is_some_and(|at| at <= now.steady);
        let may = !self.is_giving && self.not_before.is_none_or(|at| at <= now.steady);
        let begins = is_due && may;
        if begins {
            self.is_giving = true;
            // What becomes due from now on is noted anew.
            (self.next_at, self.recheck_at, self.not_before) = (None, None, None);
        }
        begins
    }

    pub(super) fn wake_at(&self) -> WakeAt {
        match (self.is_giving, self.not_before) {
            (true, _) => WakeAt::default(),
            (false, Some(at)) => WakeAt { steady: Some(at), redis_ms: None },
            (false, None) => WakeAt { steady: self.recheck_at, redis_ms: self.next_at },
        }
    }

    fn expect(&mut self, at_ms: u64) {
        self.next_at = Some(self.next_at.map_or(at_ms, |known| known.min(at_ms)));
    }
}

impl<Q: Request, R> Scheduler<Q, R> {
    /// A schedule of the partition is due at this instant by Redis' clock.
    pub(crate) fn expect_tick(&mut self, no: PartitionNo, at_ms: u64) {
        self.at(no).ticks.expect(at_ms);
        self.news.woken.push(no);
    }

    /// The partition may have schedules: they are looked at, unless they are anyway.
    pub(crate) fn watch_ticks(&mut self, no: PartitionNo) {
        let ticks = &self.get(no).ticks;
        if !ticks.is_ticking && !ticks.is_giving {
            self.expect_tick(no, 0);
        }
    }

    /// A portion of ticks was given.
    pub(crate) fn ticks_given(&mut self, no: PartitionNo, report: TicksReport, now: Now) {
        let was_ticking = self.get(no).ticks.is_ticking;
        match (was_ticking, report.is_watched) {
            (false, true) => self.ticking += 1,
            (true, false) => self.ticking = self.ticking.saturating_sub(1),
            _ => {}
        }
        let recheck = RECHECK * (self.ticking / RECHECKED_MAX + 1);
        let ticks = &mut self.at(no).ticks;
        (ticks.is_giving, ticks.is_ticking) = (false, report.is_watched);
        report.next_at.into_iter().for_each(|at_ms| ticks.expect(at_ms));
        ticks.recheck_at = report.is_watched.then(|| now.steady + recheck);
        ticks.not_before = report.is_refused.then(|| now.steady + RETRY);
        self.news.woken.push(no);
    }

    /// Redis did not answer, or refused: the ticks are tried again.
    pub(crate) fn ticks_failed(&mut self, no: PartitionNo, now: Now) {
        let ticks = &mut self.at(no).ticks;
        let at = Some(now.steady + RETRY);
        (ticks.is_giving, ticks.recheck_at, ticks.not_before) = (false, at, at);
        self.news.woken.push(no);
    }
}
