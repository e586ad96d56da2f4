//! A reserve that wants jobs now or waits for them.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Instant;

use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::op::LeasedJob;
use tokio::sync::Notify;

use super::{BatchNo, Partition};
use crate::clock;
use crate::dispatch::Addressee;

/// A reserve on one or several partitions. At most one of them looks for it at a time, so it never
/// gets more than it wants.
pub(crate) struct Demand {
    /// In the order they came.
    pub(crate) no: u64,
    /// Most jobs to take.
    pub(crate) max: usize,
    pub(crate) ttr_ms: Option<u64>,
    /// The batch it came with.
    pub(crate) batch: Option<BatchNo>,
    pub(crate) since: Instant,
    /// It waits; otherwise it ends when all its partitions have looked.
    pub(crate) waits: bool,
    /// The partition whose look for it is under way, by its number.
    claimed: Cell<Option<u64>>,
    /// Partitions that would have looked meanwhile, by their numbers.
    missed: RefCell<Vec<u64>>,
    /// The partitions in whose lines it stands.
    lines: RefCell<Vec<Weak<Partition>>>,
    /// Those that have looked in vain, by their numbers, and for which reason.
    looked: RefCell<Vec<(u64, u64)>>,
    over: Cell<bool>,
    outcome: RefCell<Result<Vec<LeasedJob>, Error>>,
    /// Who gets the outcome; `None` = a task that waits for it here.
    caller: RefCell<Option<Addressee>>,
    changed: Notify,
}

impl Demand {
    pub(crate) fn new(
        no: u64,
        batch: impl Into<Option<BatchNo>>,
        max: usize,
        ttr_ms: Option<u64>,
        waits: bool,
    ) -> Demand {
        Demand {
            no,
            batch: batch.into(),
            since: clock::instant(),
            max,
            ttr_ms,
            waits,
            claimed: Cell::new(None),
            missed: RefCell::default(),
            lines: RefCell::default(),
            looked: RefCell::default(),
            over: Cell::new(false),
            outcome: RefCell::new(Ok(Vec::new())),
            caller: RefCell::default(),
            changed: Notify::new(),
        }
    }

    /// Its outcome goes straight to who made the request.
    pub(crate) fn answering(self, caller: Addressee) -> Demand {
        Demand { caller: RefCell::new(Some(caller)), ..self }
    }

    /// It stands in these lines from now on; the first is the first to look.
    pub(crate) fn line_up(self: &Rc<Demand>, partitions: &[Rc<Partition>]) {
        *self.lines.borrow_mut() = partitions.iter().map(Rc::downgrade).collect();
        for partition in partitions {
            partition.demand(self);
        }
    }

    /// The partition of this number looks for it, if no other does.
    pub(crate) fn claim(&self, partition: u64) -> bool {
        if self.over.get() {
            return false;
        }
        if self.is_claimed() {
            self.miss(partition);
            return false;
        }
        self.claimed.set(Some(partition));
        true
    }

    /// The partition of this number will be told when the look under way is over.
    pub(crate) fn miss(&self, partition: u64) {
        let mut missed = self.missed.borrow_mut();
        if !missed.contains(&partition) {
            missed.push(partition);
        }
    }

    /// Whether a look for it is under way.
    pub(crate) fn is_claimed(&self) -> bool {
        self.claimed.get().is_some()
    }

    /// Whether it is the partition of this number that looks.
    pub(crate) fn is_claimed_by(&self, partition: u64) -> bool {
        self.claimed.get() == Some(partition)
    }

    /// The look is over: those who could not look meanwhile may. Also if it wants nothing any more:
    /// they have others to look after.
    pub(crate) fn unclaim(&self) {
        self.claimed.set(None);
        self.changed.notify_one();
        let missed = self.missed.take();
        if missed.is_empty() {
            return;
        }
        for partition in self.lines.borrow().iter().filter_map(Weak::upgrade) {
            if missed.contains(&partition.no) {
                partition.look_again();
            }
        }
    }

    /// The look is over; true = it wants no more.
    pub(crate) fn settle(&self, partition: u64, reason: u64, jobs: Vec<LeasedJob>) -> bool {
        let all_looked = self.has_looked(partition, reason);
        if !jobs.is_empty() || !self.waits && all_looked {
            *self.outcome.borrow_mut() = Ok(jobs);
            self.end();
        }
        self.unclaim();
        self.over.get()
    }

    /// Whether a look of this partition is of any use: it has not looked since there was a reason.
    /// Without that, two who wait at the same two partitions would make these look in turns for
    /// ever, and none else would get a look.
    pub(crate) fn wants_look(&self, partition: u64, reason: u64) -> bool {
        let looked = self.looked.borrow();
        let last = looked.iter().find(|(other, _)| *other == partition);
        last.is_none_or(|(_, last)| self.waits && *last < reason)
    }

    /// This one has looked in vain; true = all have.
    fn has_looked(&self, partition: u64, reason: u64) -> bool {
        let mut looked = self.looked.borrow_mut();
        match looked.iter_mut().find(|(other, _)| *other == partition) {
            Some((_, last)) => *last = reason,
            None => looked.push((partition, reason)),
        }
        looked.len() >= self.lines.borrow().len()
    }

    /// The look came to nothing at all; who does not wait is told.
    pub(crate) fn fail(&self, error: &Error) {
        if !self.waits && !self.over.get() {
            *self.outcome.borrow_mut() = Err(error.clone());
            self.end();
        }
        self.unclaim();
    }

    /// It wants nothing any more: answered, withdrawn or out of time.
    pub(crate) fn end(&self) {
        self.over.set(true);
        self.changed.notify_one();
        if let Some(caller) = self.caller.take() {
            caller.answer(self.outcome.replace(Ok(Vec::new())).map(Reply::Jobs));
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Ends when no look for it is under way.
    pub(crate) async fn unclaimed(&self) {
        while self.is_claimed() {
            self.changed.notified().await;
        }
    }

    /// Ends when it wants no more; what it got.
    pub(crate) async fn ended(&self) -> Result<Vec<LeasedJob>, Error> {
        while !self.over.get() {
            self.changed.notified().await;
        }
        self.outcome.replace(Ok(Vec::new()))
    }
}
