//! The end of the engine thread, and why it ended, for all threads that wait for it.

use std::sync::{Condvar, Mutex, PoisonError};

use dormouse_core::error::Fatal;

/// Set once, when the thread has ended.
#[derive(Default)]
pub(super) struct Termination {
    how: Mutex<Option<Result<(), Fatal>>>,
    signal: Condvar,
}

impl Termination {
    /// It has ended, and everything it held is given back.
    pub(super) fn set(&self, how: Result<(), Fatal>) {
        *self.how.lock().unwrap_or_else(PoisonError::into_inner) = Some(how);
        self.signal.notify_all();
    }

    /// Waits for the end.
    pub(super) fn wait(&self) -> Result<(), Fatal> {
        let how = self.how.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.signal.wait_while(how, |how| how.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).clone().unwrap_or(Ok(()))
    }
}
