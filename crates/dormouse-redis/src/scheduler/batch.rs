//! The contents of the next script batch: queued requests, in the order in which they were queued,
//! then polls for waiters (`polls`).
//!
//! A script executes the operations of its batch by phase, not in the order in which they were
//! queued. So a request stays queued if its submission
//!
//! - is in flight already, since the two sequences are not ordered with each other, or
//! - has put an operation of a later phase into this batch, or
//! - had an earlier request left behind.

use std::collections::{HashMap, HashSet};

pub(crate) use crate::limits::BATCH_JOBS_MAX;

use super::{
    Now, Partition, PartitionNo, Queued, SECOND_BATCH_MIN, Scheduler, SubmissionNo, WaiterNo,
};

/// The most bytes in a script batch.
pub(crate) const BATCH_BYTES_MAX: usize = 4 << 20;

/// What the scheduler must know of a request.
pub(crate) trait Request {
    fn weight(&self) -> Weight;
    /// How many jobs or callers it stands for, to judge whether a second batch is worth it.
    fn items(&self) -> usize;
    /// The order within a script.
    fn phase(&self) -> u8;
    /// Whether it can make a job visible, so that waiters must be polled for.
    fn may_make_visible(&self) -> bool;
}

/// A request's share of the room in a batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weight {
    pub(crate) jobs: usize,
    pub(crate) bytes: usize,
}

impl Weight {
    fn add(&mut self, other: Weight) {
        self.jobs += other.jobs;
        self.bytes += other.bytes;
    }

    /// Whether another request fits. The first always does.
    fn has_room(&self, other: Weight) -> bool {
        self.jobs == 0
            || self.jobs + other.jobs <= BATCH_JOBS_MAX
                && self.bytes + other.bytes <= BATCH_BYTES_MAX
    }
}

/// One poll for several waiters with the same ttr, which share its jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedPoll {
    pub(crate) waiters: Vec<WaiterNo>,
    pub(crate) max: usize,
    pub(crate) ttr_ms: Option<u64>,
    /// One of them waits if it gets nothing.
    pub(crate) waits: bool,
    /// The partition's poll epoch when the batch was filled.
    pub(crate) epoch: u64,
}

/// What goes to a partition in one script.
#[derive(Debug)]
pub(crate) struct Batch<Q> {
    /// Sorted by phase.
    pub(crate) requests: Vec<Q>,
    pub(crate) polls: Vec<SharedPoll>,
    pub(super) weight: Weight,
}

impl<Q> Default for Batch<Q> {
    fn default() -> Batch<Q> {
        Batch { requests: Vec::new(), polls: Vec::new(), weight: Weight::default() }
    }
}

impl<Q> Batch<Q> {
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.polls.is_empty()
    }

    /// Whether it polls for a blocking waiter.
    pub(super) fn waits(&self) -> bool {
        self.polls.iter().any(|poll| poll.waits)
    }
}

impl<Q: Request, R> Scheduler<Q, R> {
    /// Takes requests and polls for the next batch, and the submissions they belong to. The batch
    /// may be empty.
    pub(super) fn fill(&mut self, no: PartitionNo, now: Now) -> (Batch<Q>, Vec<SubmissionNo>) {
        let partition = self.at(no);
        let mut batch = Batch::default();
        let in_flight = partition.in_flight.iter().flat_map(|entry| &entry.submissions);
        let mut held: HashSet<SubmissionNo> = in_flight.copied().collect();
        let mut submissions = partition.take_queued(&mut batch, &mut held);
        if !partition.poll_wanted && !partition.is_paused(now) && partition.is_poll_due(now) {
            partition.bump_poll_epoch();
        }
        self.add_polls(no, &mut batch, held, now);
        let polled = batch.polls.iter().flat_map(|poll| &poll.waiters);
        submissions.extend(polled.filter_map(|waiter| self.waiters.get(waiter)?.submission));
        (batch, submissions)
    }
}

impl<Q: Request, R> Partition<Q, R> {
    /// Moves queued requests into the batch. Adds the submissions of those left behind to `held`,
    /// and returns the submissions of those taken.
    fn take_queued(
        &mut self,
        batch: &mut Batch<Q>,
        held: &mut HashSet<SubmissionNo>,
    ) -> Vec<SubmissionNo> {
        let mut phases: HashMap<SubmissionNo, u8> = HashMap::new();
        let mut submissions = Vec::new();
        self.backlog = 0;
        let mut left = Vec::new();
        while let Some(queued) = self.queue.pop_front() {
            let Queued { submission, request, .. } = &queued;
            let (fits, phase) = (batch.weight.has_room(request.weight()), request.phase());
            let in_order = submission.is_none_or(|no| {
                let is_next = phases.get(&no).is_none_or(|&last| last <= phase);
                is_next && !held.contains(&no)
            });
            if !fits || !in_order {
                held.extend(*submission);
                left.push(queued);
                if !fits {
                    // What has no room here need not wait for more before it is sent.
                    self.backlog = SECOND_BATCH_MIN;
                    break;
                }
                continue;
            }
            phases.extend(submission.map(|no| (no, phase)));
            submissions.extend(*submission);
            batch.weight.add(request.weight());
            if request.may_make_visible() {
                self.bump_poll_epoch();
            }
            batch.requests.push(queued.request);
        }
        for queued in left.into_iter().rev() {
            self.queue.push_front(queued);
        }
        batch.requests.sort_by_key(Request::phase);
        submissions
    }
}
