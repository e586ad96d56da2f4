//! The polls of the next script batch. Waiters are served in the order of their numbers. A waiter
//! may be parked at many partitions, but only one of them polls for it at a time; the others are
//! noted and poll when that poll has ended.

use std::collections::HashSet;

use super::{
    BATCH_JOBS_MAX, Batch, Now, PartitionNo, Request, Scheduler, SharedPoll, SubmissionNo, WaiterNo,
};

impl<Q: Request, R> Scheduler<Q, R> {
    /// Adds polls for the waiters, oldest first, if there is a reason to poll.
    pub(super) fn add_polls(
        &mut self,
        no: PartitionNo,
        batch: &mut Batch<Q>,
        mut held: HashSet<SubmissionNo>,
        now: Now,
    ) {
        let partition = self.get(no);
        let may_poll = partition.poll_wanted
            && !partition.in_flight.iter().any(|entry| entry.waits)
            && (!partition.is_paused(now)
                || !batch.requests.is_empty()
                || self.has_immediate_waiters(no));
        if !may_poll {
            return;
        }
        let partition = self.at(no);
        held.extend(partition.queue.iter().filter_map(|queued| queued.submission));
        partition.poll_wanted = false;
        partition.polled_elsewhere = false;
        // Also if no poll is sent: the waiters below ask for one when they can be polled for.
        partition.last_poll = now.steady;
        let (epoch, of) = (partition.poll_epoch, partition.of);
        let waiters: Vec<WaiterNo> = partition.waiters.iter().copied().collect();
        let Some(spare) = self.spare_room(no, &waiters, epoch) else {
            return;
        };
        let mut room = BATCH_JOBS_MAX.saturating_sub(batch.weight.jobs).max(1);
        // A waiter polled for here cannot be served elsewhere meanwhile, so this partition takes
        // only its share of them.
        let mut share = waiters.len().div_ceil(of);
        for waiter_no in waiters {
            let Some(waiter) = self.waiters.get_mut(&waiter_no) else {
                continue;
            };
            if waiter.polled_by == Some(no) {
                continue;
            }
            // An older waiter is served first, also by a poll that only a younger one asked for.
            if !waiter.wants_poll(no, epoch) && waiter.polled_by.is_some() {
                continue;
            }
            // An earlier request of its submission is still queued or in flight.
            if waiter.submission.is_some_and(|submission| held.contains(&submission)) {
                self.at(no).poll_wanted = true;
                continue;
            }
            // A blocking waiter gets its turn when the older ones are served.
            if waiter.is_blocking && (share == 0 || room <= spare) {
                continue;
            }
            if room == 0 {
                self.at(no).poll_wanted = true;
                continue;
            }
            if waiter.polled_by.is_some() {
                waiter.note_missed_poll(no);
                continue;
            }
            waiter.polled_by = Some(no);
            let (max, ttr_ms, waits) = (waiter.max.min(room), waiter.ttr_ms, waiter.is_blocking);
            room -= max;
            share = share.saturating_sub(usize::from(waits));
            batch
                .add_poll(waiter_no, SharedPoll { waiters: Vec::new(), max, ttr_ms, waits, epoch });
        }
        if !batch.polls.is_empty() {
            self.at(no).wakeup_at = None;
        }
    }

    fn has_immediate_waiters(&self, no: PartitionNo) -> bool {
        let is_immediate = |no: &WaiterNo| self.waiters.get(no).is_some_and(|w| !w.is_blocking);
        self.get(no).waiters.iter().any(is_immediate)
    }

    /// Room for jobs to keep for immediate waiters, which must be answered soon. `None` = every
    /// waiter that wants a poll is being polled for by another partition: a poll for the remaining
    /// ones would keep those from being polled for elsewhere. Each of them will ask for a poll when
    /// the present one has ended.
    fn spare_room(&mut self, no: PartitionNo, waiters: &[WaiterNo], epoch: u64) -> Option<usize> {
        let (mut is_any_free, mut is_any_immediate, mut polled) = (false, false, Vec::new());
        for waiter_no in waiters {
            let Some(waiter) = self.waiters.get(waiter_no) else {
                continue;
            };
            if waiter.polled_by == Some(no) || !waiter.wants_poll(no, epoch) {
                continue;
            }
            match waiter.polled_by {
                Some(_) => polled.push(*waiter_no),
                None => {
                    is_any_free = true;
                    is_any_immediate |= !waiter.is_blocking;
                }
            }
        }
        if is_any_free {
            return Some(usize::from(is_any_immediate));
        }
        self.at(no).polled_elsewhere = !polled.is_empty();
        for waiter_no in polled {
            if let Some(waiter) = self.waiters.get_mut(&waiter_no) {
                waiter.note_missed_poll(no);
            }
        }
        None
    }
}

impl<Q> Batch<Q> {
    /// Adds a poll for a waiter, or joins it to the last one.
    fn add_poll(&mut self, waiter: WaiterNo, poll: SharedPoll) {
        match self.polls.last_mut() {
            Some(last) if last.ttr_ms == poll.ttr_ms => {
                last.max += poll.max;
                last.waits |= poll.waits;
                last.waiters.push(waiter);
            }
            _ => self.polls.push(SharedPoll { waiters: vec![waiter], ..poll }),
        }
    }
}
