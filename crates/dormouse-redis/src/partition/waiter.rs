//! The task's side of a reserve that is parked: whether it is done, and with what.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::op::LeasedJob;
use tokio::sync::Notify;

use super::{Partition, Shared};
use crate::outbox::Caller;
use crate::scheduler::{NewWaiter, WaiterNo};

pub(crate) struct Waiter {
    shared: Rc<Shared>,
    pub(crate) no: WaiterNo,
    pub(crate) reserve: NewWaiter,
    is_done: Cell<bool>,
    result: RefCell<Result<Vec<LeasedJob>, Error>>,
    /// Gets the result; `None` = a task awaits `finished`.
    caller: RefCell<Option<Caller>>,
    changed: Notify,
}

impl Waiter {
    pub(crate) fn new(shared: &Rc<Shared>, no: WaiterNo, reserve: NewWaiter) -> Waiter {
        Waiter {
            shared: Rc::clone(shared),
            no,
            reserve,
            is_done: Cell::new(false),
            result: RefCell::new(Ok(Vec::new())),
            caller: RefCell::default(),
            changed: Notify::new(),
        }
    }

    /// Sends the result straight to the caller.
    pub(crate) fn replying_to(self, caller: Caller) -> Waiter {
        Waiter { caller: RefCell::new(Some(caller)), ..self }
    }

    /// Parks it at these partitions.
    pub(crate) fn park_at(self: &Rc<Waiter>, partitions: &[Rc<Partition>]) {
        let partitions: Vec<_> = partitions.iter().map(|partition| partition.no).collect();
        self.shared.add_waiter(self);
        self.shared.schedule(|scheduler, now| {
            scheduler.park(self.no, self.reserve, &partitions, now);
        });
    }

    /// It is served, withdrawn or out of time. No partition polls for it from here on.
    pub(crate) fn finish(&self) {
        self.is_done.set(true);
        self.changed.notify_one();
        self.shared.remove_waiter(self.no);
        if let Some(caller) = self.caller.take() {
            caller.answer(self.result.replace(Ok(Vec::new())).map(Reply::Jobs));
        }
    }

    pub(super) fn finish_with(&self, result: Result<Vec<LeasedJob>, Error>) {
        *self.result.borrow_mut() = result;
        self.finish();
    }

    /// A poll for it has ended.
    pub(super) fn note_poll_ended(&self) {
        self.changed.notify_one();
    }

    pub(crate) fn is_done(&self) -> bool {
        self.is_done.get()
    }

    /// Returns when no partition polls for it.
    pub(crate) async fn poll_ended(&self) {
        while self.shared.schedule(|scheduler, _| scheduler.is_polled(self.no)) {
            self.changed.notified().await;
        }
    }

    /// Returns its jobs when it is done.
    pub(crate) async fn finished(&self) -> Result<Vec<LeasedJob>, Error> {
        while !self.is_done.get() {
            self.changed.notified().await;
        }
        self.result.replace(Ok(Vec::new()))
    }
}
