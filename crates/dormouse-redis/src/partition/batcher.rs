//! Chooses the contents of the next script batch.
//!
//! Two sources feed a batch. Queued requests come first, in the order in which they were queued.
//! Then, if there is a reason to poll, reserves of parked waiters fill the room that is left.
//!
//! A script executes the operations of its batch by phase (see `PartitionRequest::phase`), not in
//! the order in which they were queued. So a request stays queued if its submission
//!
//! - is in flight already, since the two sequences are not ordered with each other, or
//! - has put an operation of a later phase into this batch, or
//! - had an earlier request left behind.
//!
//! Waiters are served in the order of their numbers. A waiter may be parked at many partitions, but
//! only one of them polls for it at a time, so it never gets more jobs than it asked for; the
//! others leave a note and poll again when that poll has ended.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use super::batch::ScriptBatch;
use super::in_flight::{BatchInfo, InFlight, SECOND_BATCH_MIN};
use super::request::{BATCH_JOBS_MAX, PartitionRequest};
use super::waiter::Waiter;
use super::{Partition, Queued, SubmissionNo};
use crate::clock;

impl Partition {
    /// Takes requests and polls for the next batch. The batch may be empty.
    pub(super) fn fill(&self, in_flight: &InFlight<'_>) -> (ScriptBatch, BatchInfo) {
        let mut batch = ScriptBatch::default();
        let mut held: HashSet<SubmissionNo> = in_flight.submissions().collect();
        let mut submissions = self.take_queued(&mut batch, &mut held);
        let paused = self.poll_not_before.get().is_some_and(|until| until > clock::instant());
        if !self.poll_wanted.get() && !paused && self.is_poll_due() {
            self.bump_poll_epoch();
        }
        if self.poll_wanted.get()
            && !in_flight.has_blocking()
            && (!paused || !batch.requests.is_empty() || self.has_immediate_waiters())
        {
            self.add_polls(&mut batch, held);
        }
        let polled = batch.polls.iter().flat_map(|shared| &shared.waiters);
        submissions.extend(polled.filter_map(|waiter| waiter.submission));
        let info = BatchInfo { has_blocking: batch.has_blocking(), submissions };
        (batch, info)
    }

    /// Moves queued requests into the batch. Adds the submissions of those left behind to `held`,
    /// and returns the submissions of those taken.
    fn take_queued(
        &self,
        batch: &mut ScriptBatch,
        held: &mut HashSet<SubmissionNo>,
    ) -> Vec<SubmissionNo> {
        let mut phases: HashMap<SubmissionNo, u8> = HashMap::new();
        let mut submissions = Vec::new();
        self.backlog.set(0);
        let mut queue = self.queue.borrow_mut();
        let mut left = Vec::new();
        while let Some(queued) = queue.pop_front() {
            let Queued { submission, request, .. } = &queued;
            let fits = batch.weight.has_room(request.weight());
            let in_order = submission.is_none_or(|no| {
                let is_next = phases.get(&no).is_none_or(|&phase| phase <= request.phase());
                is_next && !held.contains(&no)
            });
            if !fits || !in_order {
                held.extend(*submission);
                left.push(queued);
                if !fits {
                    // What has no room here need not wait for more before it is sent.
                    self.backlog.set(SECOND_BATCH_MIN);
                    break;
                }
                continue;
            }
            phases.extend(submission.map(|no| (no, request.phase())));
            submissions.extend(*submission);
            batch.weight.add(request.weight());
            if request.may_make_visible() {
                self.bump_poll_epoch();
            }
            batch.requests.push(queued.request);
        }
        for queued in left.into_iter().rev() {
            queue.push_front(queued);
        }
        drop(queue);
        batch.requests.sort_by_key(PartitionRequest::phase);
        submissions
    }

    fn has_immediate_waiters(&self) -> bool {
        self.waiters.borrow().values().any(|waiter| !waiter.is_blocking)
    }

    /// Adds polls for the waiters, oldest first.
    fn add_polls(&self, batch: &mut ScriptBatch, mut held: HashSet<SubmissionNo>) {
        held.extend(self.queue.borrow().iter().filter_map(|queued| queued.submission));
        self.poll_wanted.set(false);
        self.polled_elsewhere.set(false);
        // Also if no poll is sent: the waiters below ask for one when they can be polled for.
        self.last_poll.set(clock::instant());
        let mut waiters = self.waiters.borrow_mut();
        waiters.retain(|_, waiter| !waiter.is_done());
        let epoch = self.poll_epoch.get();
        let Some(spare) = self.spare_room(&waiters, epoch) else { return };
        let mut room = BATCH_JOBS_MAX.saturating_sub(batch.weight.jobs).max(1);
        // A waiter polled for here cannot be served elsewhere meanwhile, so this partition takes
        // only its share of them.
        let mut share = waiters.len().div_ceil(usize::try_from(self.position.1).unwrap_or(1));
        for waiter in waiters.values() {
            if waiter.is_polled_by(self.no) {
                continue;
            }
            // An older waiter is served first, also by a poll that only a younger one asked for.
            let wants = waiter.wants_poll(self.no, epoch);
            if !wants && (!waiter.is_blocking || waiter.is_polled()) {
                continue;
            }
            // An earlier request of its submission is still queued or in flight.
            if waiter.submission.is_some_and(|no| held.contains(&no)) {
                self.poll_wanted.set(true);
                continue;
            }
            // A blocking waiter gets its turn when the older ones are served.
            if waiter.is_blocking && (share == 0 || room <= spare) {
                continue;
            }
            if room == 0 {
                self.poll_wanted.set(true);
                continue;
            }
            if !waiter.begin_poll(self.no) {
                continue;
            }
            let max = waiter.max.min(room);
            room -= max;
            share = share.saturating_sub(usize::from(waiter.is_blocking));
            batch.add_poll(waiter, max, epoch);
        }
        if !batch.polls.is_empty() {
            self.wakeup_at.set(None);
        }
    }

    /// Room for jobs to keep for immediate waiters, which must be answered soon. `None` = every
    /// waiter that wants a poll is being polled for by another partition: a poll for the remaining
    /// ones would keep those from being polled for elsewhere. Each of them will ask for a poll when
    /// the present one has ended.
    fn spare_room(&self, waiters: &BTreeMap<u64, Rc<Waiter>>, epoch: u64) -> Option<usize> {
        let (free, polled): (Vec<_>, Vec<_>) = waiters
            .values()
            .filter(|waiter| !waiter.is_polled_by(self.no) && waiter.wants_poll(self.no, epoch))
            .partition(|waiter| !waiter.is_polled());
        if free.is_empty() {
            polled.iter().for_each(|waiter| waiter.note_missed_poll(self.no));
            self.polled_elsewhere.set(!polled.is_empty());
            return None;
        }
        Some(usize::from(free.iter().any(|waiter| !waiter.is_blocking)))
    }
}
