//! Where requests and the other threads' reports wait for the engine thread: bounded, taken whole.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dormouse_core::backend::{Admission, Load, Request, Sink};
use dormouse_core::error::Error;

use super::Report;

/// A batch as it was submitted.
pub(super) struct Submission {
    pub(super) requests: Vec<Request>,
    pub(super) sink: Arc<dyn Sink>,
}

/// Everything that the engine takes at once.
#[derive(Default)]
pub(super) struct Messages {
    pub(super) submissions: Vec<Submission>,
    pub(super) reports: Vec<Report>,
    pub(super) closing: bool,
}

#[derive(Default)]
struct State {
    messages: Messages,
    /// The load of the queued submissions.
    load: Load,
    /// Time was moved by hand.
    nudged: bool,
    /// Why nothing is taken any more.
    stopped: Option<Error>,
}

/// The queue before the engine thread.
#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    arrived: Condvar,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a batch, unless too much waits already.
    pub(super) fn submit(&self, submission: Submission) -> Result<(), Error> {
        let admission = Admission::of(submission.requests.iter().map(|one| &one.command));
        let mut state = self.lock();
        if let Some(error) = &state.stopped {
            return Err(error.clone());
        }
        state.load = admission.admit(state.load)?;
        state.messages.submissions.push(submission);
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// How many requests wait.
    pub(super) fn requests(&self) -> usize {
        self.lock().load.requests
    }

    /// Another thread reports.
    pub(super) fn report(&self, report: Report) {
        self.lock().messages.reports.push(report);
        self.arrived.notify_one();
    }

    /// Somebody outside wants something other than an operation.
    pub(super) fn ask(&self, report: Report) -> Result<(), Error> {
        let mut state = self.lock();
        if let Some(error) = &state.stopped {
            return Err(error.clone());
        }
        state.messages.reports.push(report);
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// Time was moved by hand: look again.
    pub(super) fn nudge(&self) {
        self.lock().nudged = true;
        self.arrived.notify_one();
    }

    /// Asks the engine to finish and end.
    pub(super) fn close(&self) {
        self.lock().messages.closing = true;
        self.arrived.notify_one();
    }

    /// Refuses everything from now on; returns the queued submissions.
    pub(super) fn stop(&self, why: Error) -> Vec<Submission> {
        let mut state = self.lock();
        state.stopped = Some(why);
        // Dropping a report wakes its sender, which learns that no answer will come.
        state.messages.reports.clear();
        std::mem::take(&mut state.messages.submissions)
    }

    /// Waits for messages, at most for `timeout`. While `reports_only`, requests stay queued.
    pub(super) fn wait(&self, timeout: Option<Duration>, reports_only: bool) -> Messages {
        let mut state = self.lock();
        let is_quiet = |state: &mut State| {
            let requests = !reports_only && !state.messages.submissions.is_empty();
            !(requests
                || !state.messages.reports.is_empty()
                || state.messages.closing
                || state.nudged)
        };
        state = match timeout {
            Some(timeout) => {
                let waited = self.arrived.wait_timeout_while(state, timeout, is_quiet);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                self.arrived.wait_while(state, is_quiet).unwrap_or_else(PoisonError::into_inner)
            }
        };
        state.nudged = false;
        let mut messages = Messages {
            submissions: Vec::new(),
            reports: std::mem::take(&mut state.messages.reports),
            closing: state.messages.closing,
        };
        if !reports_only {
            messages.submissions = std::mem::take(&mut state.messages.submissions);
            state.load = Load::default();
        }
        messages
    }
}
