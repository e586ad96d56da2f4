//! Waiters: reserves parked at one or several partitions, blocking or immediate.
//!
//! At most one partition polls for a waiter at a time, so it never gets more jobs than it asked
//! for. A partition that would have polled meanwhile is noted in `missed` and polls when the
//! present poll has ended.
//!
//! An immediate waiter is parked at one partition and done when that has polled. A blocking one is
//! done when it has jobs, or is withdrawn; it is polled for again whenever a partition's poll epoch
//! grows. It is not polled for twice in one epoch: two waiters parked at the same two partitions
//! would otherwise make these poll in turns for ever, and keep all others from being served.

use std::time::Duration;

use super::in_flight::InFlight;
use super::{Batch, Now, PartitionNo, Request, Scheduler, SharedPoll, SubmissionNo, WaiterNo};

/// A reserve to be parked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewWaiter {
    pub(crate) max: usize,
    pub(crate) ttr_ms: Option<u64>,
    pub(crate) submission: Option<SubmissionNo>,
    pub(crate) is_blocking: bool,
}

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) max: usize,
    pub(super) ttr_ms: Option<u64>,
    pub(super) submission: Option<SubmissionNo>,
    since: Duration,
    pub(super) is_blocking: bool,
    /// The partition that polls for it.
    pub(super) polled_by: Option<PartitionNo>,
    /// The partitions that would have polled meanwhile.
    missed: Vec<PartitionNo>,
    partitions: Vec<PartitionNo>,
    /// The partitions that found nothing, and in which poll epoch.
    polled: Vec<(PartitionNo, u64)>,
}

impl Waiter {
    /// Whether this partition has not yet polled for it in this epoch.
    pub(super) fn wants_poll(&self, partition: PartitionNo, epoch: u64) -> bool {
        let last = self.polled.iter().find(|(other, _)| *other == partition);
        last.is_none_or(|(_, last)| *last < epoch)
    }

    /// Asks this partition to poll when the present poll has ended.
    pub(super) fn note_missed_poll(&mut self, partition: PartitionNo) {
        if !self.missed.contains(&partition) {
            self.missed.push(partition);
        }
    }

    fn note_polled(&mut self, partition: PartitionNo, epoch: u64) {
        match self.polled.iter_mut().find(|(other, _)| *other == partition) {
            Some((_, last)) => *last = epoch,
            None => self.polled.push((partition, epoch)),
        }
    }

    /// An immediate one that nobody polls for and that waits for too long.
    pub(super) fn is_stuck(&self, is_late: impl Fn(Duration) -> bool) -> bool {
        !self.is_blocking && self.polled_by.is_none() && is_late(self.since)
    }
}

/// What a poll came to.
#[derive(Debug)]
pub(crate) struct PollOutcome<J> {
    /// Waiters that are done, with their jobs; an immediate one may have none.
    pub(crate) done: Vec<(WaiterNo, Vec<J>)>,
    /// Jobs for waiters that were done meanwhile: withdrawn, or served elsewhere.
    pub(crate) left: Vec<J>,
}

impl<Q: Request, R> Scheduler<Q, R> {
    /// Parks a waiter at these partitions; an immediate one at one.
    pub(crate) fn park(
        &mut self,
        no: WaiterNo,
        waiter: NewWaiter,
        partitions: &[PartitionNo],
        now: Now,
    ) {
        let NewWaiter { max, ttr_ms, submission, is_blocking } = waiter;
        let waiter = Waiter {
            max,
            ttr_ms,
            submission,
            since: now.steady,
            is_blocking,
            polled_by: None,
            missed: Vec::new(),
            partitions: partitions.to_vec(),
            polled: Vec::new(),
        };
        self.waiters.insert(no, waiter);
        for &partition in partitions {
            let partition = self.at(partition);
            partition.backlog += 1;
            partition.last_used = now.steady;
            partition.poll_wanted = true;
            partition.waiters.insert(no);
        }
        self.news.woken.extend(partitions);
    }

    /// Forgets a waiter: served, withdrawn or out of time. Jobs of a poll under way are left over.
    pub(crate) fn remove_waiter(&mut self, no: WaiterNo) {
        let Some(waiter) = self.waiters.remove(&no) else {
            return;
        };
        for &partition in &waiter.partitions {
            self.at(partition).waiters.remove(&no);
        }
        // They skipped a poll that may serve others.
        self.retry_polls(waiter.missed);
    }

    /// Whether a partition polls for it.
    pub(crate) fn is_polled(&self, no: WaiterNo) -> bool {
        self.waiters.get(&no).is_some_and(|waiter| waiter.polled_by.is_some())
    }

    /// How many reserves wait for a job of this partition.
    pub(crate) fn blocking_waiters(&self, no: PartitionNo) -> usize {
        let is_blocking = |no: &&WaiterNo| self.waiters.get(no).is_some_and(|w| w.is_blocking);
        self.get(no).waiters.iter().filter(is_blocking).count()
    }

    /// Since when the oldest waits that does not block and that nobody polls for.
    pub(super) fn oldest_immediate(&self, no: PartitionNo) -> Option<Duration> {
        let waiters = self.get(no).waiters.iter().filter_map(|no| self.waiters.get(no));
        waiters.filter(|waiter| waiter.is_stuck(|_| true)).map(|waiter| waiter.since).next()
    }

    /// All that are parked at this partition.
    pub(crate) fn waiters_at(&self, no: PartitionNo) -> Vec<WaiterNo> {
        self.get(no).waiters.iter().copied().collect()
    }

    fn retry_polls(&mut self, partitions: Vec<PartitionNo>) {
        for &partition in &partitions {
            self.at(partition).poll_wanted = true;
        }
        self.news.woken.extend(partitions);
    }

    /// Ends the poll for a waiter, and lets the partitions poll that could not meanwhile.
    fn end_poll(&mut self, no: WaiterNo) {
        if let Some(waiter) = self.waiters.get_mut(&no) {
            waiter.polled_by = None;
            self.news.freed.push(no);
            let missed = std::mem::take(&mut waiter.missed);
            self.retry_polls(missed);
        }
    }

    /// A batch is not answered: another partition may poll for the blocking waiters of its polls.
    /// If it is answered before they are served, they get its jobs all the same. It is not changed:
    /// what has a number must stay what it is.
    pub(super) fn free_waiters(&mut self, no: PartitionNo, now: Now) {
        let is_slow =
            |entry: &&mut InFlight<Q>| entry.waits && !entry.is_freed && entry.is_slow(now);
        let Some(entry) = self.at(no).in_flight.iter_mut().find(is_slow) else { return };
        entry.is_freed = true;
        let waiters: Vec<_> = entry.batch.polls.iter().flat_map(|p| p.waiters.clone()).collect();
        for waiter_no in waiters {
            let waiter = self.waiters.get(&waiter_no);
            let is_here = waiter.is_some_and(|w| w.is_blocking && w.polled_by == Some(no));
            if is_here {
                self.end_poll(waiter_no);
            }
        }
    }

    /// Gives the jobs of a poll to its waiters, oldest first.
    pub(crate) fn polled<J>(
        &mut self,
        no: PartitionNo,
        poll: &SharedPoll,
        jobs: Vec<J>,
    ) -> PollOutcome<J> {
        if jobs.len() >= poll.max {
            // There may be more jobs, for waiters that had no room in this poll.
            self.poll_now(no);
        }
        let mut jobs = jobs.into_iter();
        let mut done = Vec::new();
        for &waiter_no in &poll.waiters {
            let Some(waiter) = self.waiters.get_mut(&waiter_no) else {
                continue;
            };
            let its: Vec<J> = jobs.by_ref().take(waiter.max).collect();
            waiter.note_polled(no, poll.epoch);
            let is_done = !its.is_empty() || !waiter.is_blocking;
            if waiter.polled_by == Some(no) {
                self.end_poll(waiter_no);
            }
            if is_done {
                self.remove_waiter(waiter_no);
                done.push((waiter_no, its));
            }
        }
        PollOutcome { done, left: jobs.collect() }
    }

    /// A poll met only jobs that were too late: it is made again.
    pub(crate) fn repeat_poll(&mut self, no: PartitionNo, poll: &SharedPoll) {
        for &waiter_no in &poll.waiters {
            if self.waiters.get(&waiter_no).is_some_and(|waiter| waiter.polled_by == Some(no)) {
                self.end_poll(waiter_no);
            }
        }
        self.poll_now(no);
    }

    /// A poll came to nothing. Blocking waiters stay parked; returns the immediate ones, which are
    /// to be answered.
    pub(crate) fn drop_poll(&mut self, no: PartitionNo, poll: &mut SharedPoll) -> Vec<WaiterNo> {
        let mut immediate = Vec::new();
        for waiter_no in poll.waiters.drain(..) {
            let Some(waiter) = self.waiters.get(&waiter_no) else {
                continue;
            };
            if waiter.polled_by != Some(no) {
                continue;
            }
            let is_blocking = waiter.is_blocking;
            self.end_poll(waiter_no);
            if !is_blocking {
                self.remove_waiter(waiter_no);
                immediate.push(waiter_no);
            }
        }
        immediate
    }

    pub(super) fn drop_polls(&mut self, no: PartitionNo, batch: &mut Batch<Q>) -> Vec<WaiterNo> {
        let mut polls = std::mem::take(&mut batch.polls);
        polls.iter_mut().flat_map(|poll| self.drop_poll(no, poll)).collect()
    }
}
