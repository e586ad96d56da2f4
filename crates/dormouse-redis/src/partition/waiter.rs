//! A reserve parked at one or several partitions, blocking or immediate.
//!
//! At most one partition polls for a waiter at a time (`begin_poll` .. `end_poll`), so it never
//! gets more jobs than it asked for. A partition that would have polled meanwhile leaves its number
//! in `missed` and is asked to poll when the present poll has ended.
//!
//! An immediate waiter is done when every partition has polled once. A blocking one is done when it
//! has jobs, or is withdrawn; it is polled for again whenever a partition's poll epoch grows. It is
//! not polled for twice in one epoch: two waiters parked at the same two partitions would otherwise
//! make these poll in turns for ever, and keep all others from being served.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Instant;

use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::op::LeasedJob;
use tokio::sync::Notify;

use super::{Partition, SubmissionNo};
use crate::clock;
use crate::dispatch::Caller;

pub(crate) struct Waiter {
    /// Grows with every waiter: the smallest is served first.
    pub(crate) no: u64,
    pub(crate) max: usize,
    pub(crate) ttr_ms: Option<u64>,
    pub(crate) submission: Option<SubmissionNo>,
    pub(crate) since: Instant,
    pub(crate) is_blocking: bool,
    /// The number of the partition that polls for it.
    polled_by: Cell<Option<u64>>,
    /// The numbers of the partitions that would have polled meanwhile.
    missed: RefCell<Vec<u64>>,
    /// The partitions at which it is parked.
    partitions: RefCell<Vec<Weak<Partition>>>,
    /// The partitions that found nothing, by number, and in which poll epoch.
    polled: RefCell<Vec<(u64, u64)>>,
    done: Cell<bool>,
    result: RefCell<Result<Vec<LeasedJob>, Error>>,
    /// Gets the result; `None` = a task awaits `finished`.
    caller: RefCell<Option<Caller>>,
    changed: Notify,
}

impl Waiter {
    pub(crate) fn new(
        no: u64,
        submission: impl Into<Option<SubmissionNo>>,
        max: usize,
        ttr_ms: Option<u64>,
        is_blocking: bool,
    ) -> Waiter {
        Waiter {
            no,
            submission: submission.into(),
            since: clock::instant(),
            max,
            ttr_ms,
            is_blocking,
            polled_by: Cell::new(None),
            missed: RefCell::default(),
            partitions: RefCell::default(),
            polled: RefCell::default(),
            done: Cell::new(false),
            result: RefCell::new(Ok(Vec::new())),
            caller: RefCell::default(),
            changed: Notify::new(),
        }
    }

    /// Sends the result straight to the caller.
    pub(crate) fn replying_to(self, caller: Caller) -> Waiter {
        Waiter { caller: RefCell::new(Some(caller)), ..self }
    }

    /// Parks it at these partitions; the first polls first.
    pub(crate) fn park_at(self: &Rc<Waiter>, partitions: &[Rc<Partition>]) {
        *self.partitions.borrow_mut() = partitions.iter().map(Rc::downgrade).collect();
        for partition in partitions {
            partition.park(self);
        }
    }

    /// Claims it for a poll of this partition. False = it is done, or another partition polls.
    pub(crate) fn begin_poll(&self, partition: u64) -> bool {
        if self.done.get() {
            return false;
        }
        if self.is_polled() {
            self.note_missed_poll(partition);
            return false;
        }
        self.polled_by.set(Some(partition));
        true
    }

    /// Asks this partition to poll when the present poll has ended.
    pub(crate) fn note_missed_poll(&self, partition: u64) {
        let mut missed = self.missed.borrow_mut();
        if !missed.contains(&partition) {
            missed.push(partition);
        }
    }

    pub(crate) fn is_polled(&self) -> bool {
        self.polled_by.get().is_some()
    }

    pub(crate) fn is_polled_by(&self, partition: u64) -> bool {
        self.polled_by.get() == Some(partition)
    }

    /// Lets the partitions poll that could not meanwhile; also if it is done, since they skipped
    /// a poll that may serve others.
    pub(crate) fn end_poll(&self) {
        self.polled_by.set(None);
        self.changed.notify_one();
        let missed = self.missed.take();
        if missed.is_empty() {
            return;
        }
        for partition in self.partitions.borrow().iter().filter_map(Weak::upgrade) {
            if missed.contains(&partition.no) {
                partition.retry_poll();
            }
        }
    }

    /// Takes the jobs of a poll. True = it is done.
    pub(crate) fn finish_poll(&self, partition: u64, epoch: u64, jobs: Vec<LeasedJob>) -> bool {
        let all_polled = self.note_polled(partition, epoch);
        if !jobs.is_empty() || !self.is_blocking && all_polled {
            *self.result.borrow_mut() = Ok(jobs);
            self.finish();
        }
        self.end_poll();
        self.done.get()
    }

    /// Whether this partition has not yet polled for it in this epoch.
    pub(crate) fn wants_poll(&self, partition: u64, epoch: u64) -> bool {
        let polled = self.polled.borrow();
        let last = polled.iter().find(|(other, _)| *other == partition);
        last.is_none_or(|(_, last)| self.is_blocking && *last < epoch)
    }

    /// True = all partitions have polled.
    fn note_polled(&self, partition: u64, epoch: u64) -> bool {
        let mut polled = self.polled.borrow_mut();
        match polled.iter_mut().find(|(other, _)| *other == partition) {
            Some((_, last)) => *last = epoch,
            None => polled.push((partition, epoch)),
        }
        polled.len() >= self.partitions.borrow().len()
    }

    /// The poll failed. A blocking waiter stays parked for the next one.
    pub(crate) fn fail(&self, error: &Error) {
        if !self.is_blocking && !self.done.get() {
            *self.result.borrow_mut() = Err(error.clone());
            self.finish();
        }
        self.end_poll();
    }

    /// Served, withdrawn or out of time.
    pub(crate) fn finish(&self) {
        self.done.set(true);
        self.changed.notify_one();
        if let Some(caller) = self.caller.take() {
            caller.answer(self.result.replace(Ok(Vec::new())).map(Reply::Jobs));
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.get()
    }

    /// Returns when no partition polls for it.
    pub(crate) async fn poll_ended(&self) {
        while self.is_polled() {
            self.changed.notified().await;
        }
    }

    /// Returns its jobs when it is done.
    pub(crate) async fn finished(&self) -> Result<Vec<LeasedJob>, Error> {
        while !self.done.get() {
            self.changed.notified().await;
        }
        self.result.replace(Ok(Vec::new()))
    }
}
