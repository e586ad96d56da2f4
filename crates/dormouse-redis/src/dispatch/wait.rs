//! The wait of a blocking reserve or lock, from its dispatch to its answer. It begins before names
//! are looked up and partitions are asked: a slow Redis must not prolong it, and a caller may
//! withdraw the request at any time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use dormouse_core::error::Error;
use dormouse_core::refusal::too_many_wait;

use crate::clock::Deadline;
use crate::partition::waiter::Waiter;

pub(crate) struct Wait {
    deadline: Deadline,
    /// Fewer than `WAITERS_MAX` others waited at its dispatch.
    has_room: bool,
    is_withdrawn: Cell<bool>,
    /// `None` = the request is not yet ready to wait.
    waiter: RefCell<Option<Rc<Waiter>>>,
}

impl Wait {
    pub(super) fn new(deadline: Deadline, has_room: bool) -> Wait {
        Wait { deadline, has_room, is_withdrawn: Cell::new(false), waiter: RefCell::default() }
    }

    /// Lets this waiter wait; it is done at once if the request was withdrawn before.
    pub(crate) fn begin(&self, waiter: &Rc<Waiter>) -> Result<(), Error> {
        if !self.has_room {
            return Err(too_many_wait());
        }
        if self.is_withdrawn.get() {
            waiter.finish();
        }
        *self.waiter.borrow_mut() = Some(Rc::clone(waiter));
        Ok(())
    }

    /// Ends the wait, also one that has yet to begin.
    pub(crate) fn withdraw(&self) {
        self.is_withdrawn.set(true);
        if let Some(waiter) = self.waiter.borrow().as_ref() {
            waiter.finish();
        }
    }

    /// Returns when the time of the wait has passed.
    pub(crate) async fn over(&self) {
        self.deadline.reached().await;
    }
}
