//! Where requests and the other threads' reports wait for the next turn: bounded, taken in order.
//!
//! A request is pushed under the lock before its caller tries to take a turn, and a thread that
//! ends its turn looks in here again after it has let the state go. So whatever is pushed is either
//! seen by that look or belongs to a caller that finds the state free.

use std::collections::VecDeque;
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

/// A submission, and what it takes to apply it.
struct Queued {
    submission: Submission,
    load: Load,
    items: usize,
    /// It may take longer than a caller should work for others.
    is_long: bool,
}

/// How far the journal has come since the last turn.
#[derive(Default)]
pub(super) struct JournalProgress {
    /// Batches up to this one are as durable as promised.
    pub(super) durable: Option<u64>,
    /// Batches up to this one are synced.
    pub(super) synced: Option<u64>,
    /// Buffers to use again.
    pub(super) buffers: Vec<Vec<u8>>,
}

impl JournalProgress {
    fn is_empty(&self) -> bool {
        self.durable.is_none() && self.synced.is_none()
    }
}

/// The messages that one turn takes.
#[derive(Default)]
pub(super) struct Messages {
    /// How many submissions were taken with them.
    pub(super) submissions: usize,
    pub(super) progress: JournalProgress,
    pub(super) reports: Vec<Report>,
    pub(super) closing: bool,
}

impl Messages {
    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.submissions == 0
            && self.progress.is_empty()
            && self.reports.is_empty()
            && !self.closing
    }
}

/// The thread that takes a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnOwner {
    /// A thread that came with a request, or the sync thread: it does no long work.
    Caller,
    /// The engine thread.
    EngineThread,
}

/// The rest of the inbox after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// Nothing, or nothing that may be taken now.
    Nothing,
    /// Requests that a caller may take, or progress.
    Short,
    /// Something that only the engine thread does.
    Long,
}

/// More queued items than this are the engine thread's: waking it costs little beside them, and the
/// caller can go on to prepare more.
const CALLER_ITEMS_MAX: usize = 64;
/// The engine thread takes at most this many items per turn.
const THREAD_ITEMS_MAX: usize = 8_192;

#[derive(Default)]
struct State {
    queued: VecDeque<Queued>,
    /// The load of the queued submissions, and their items.
    load: Load,
    items: usize,
    progress: JournalProgress,
    reports: Vec<Report>,
    closing: bool,
    /// The engine thread is to take a turn.
    woken: bool,
    /// The engine thread sleeps: without this, every wake would be a system call.
    sleeping: bool,
    /// Why nothing is taken any more.
    stopped: Option<Error>,
}

/// The queue before the engine.
#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    wakeup: Condvar,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the engine thread if it sleeps.
    fn wake_with(&self, mut state: MutexGuard<'_, State>) {
        state.woken = true;
        let sleeping = state.sleeping;
        drop(state);
        if sleeping {
            self.wakeup.notify_one();
        }
    }

    /// Takes a batch, unless too much waits already. It wakes nobody.
    pub(super) fn push(&self, submission: Submission) -> Result<(), Error> {
        let admission = Admission::of(submission.requests.iter().map(|one| &one.command));
        let is_long = submission.requests.iter().any(|one| one.command.is_long());
        let items = submission.requests.iter().map(|one| one.command.items()).sum();
        let load = admission.load();
        let mut state = self.lock();
        if let Some(error) = &state.stopped {
            return Err(error.clone());
        }
        state.load = admission.admit(state.load)?;
        state.items += items;
        state.queued.push_back(Queued { submission, load, items, is_long });
        Ok(())
    }

    /// How many requests wait.
    pub(super) fn requests(&self) -> usize {
        self.lock().load.requests
    }

    /// The journal has come further. It wakes nobody: the next turn sees it.
    pub(super) fn progress(
        &self,
        durable: Option<u64>,
        synced: Option<u64>,
        buffers: Vec<Vec<u8>>,
    ) {
        let mut state = self.lock();
        let progress = &mut state.progress;
        progress.durable = progress.durable.max(durable);
        progress.synced = progress.synced.max(synced);
        progress.buffers.extend(buffers);
    }

    /// Another thread reports to the engine thread.
    pub(super) fn report(&self, report: Report) {
        let mut state = self.lock();
        state.reports.push(report);
        self.wake_with(state);
    }

    /// Somebody outside wants something other than an operation.
    pub(super) fn ask(&self, report: Report) -> Result<(), Error> {
        let mut state = self.lock();
        if let Some(error) = &state.stopped {
            return Err(error.clone());
        }
        state.reports.push(report);
        self.wake_with(state);
        Ok(())
    }

    /// The engine thread is to take a turn: there is long work, time was moved by hand, or its
    /// alarm is too late.
    pub(super) fn wake(&self) {
        self.wake_with(self.lock());
    }

    /// Asks the engine thread to finish and end.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closing = true;
        self.wake_with(state);
    }

    /// Refuses everything from now on; returns the queued submissions.
    pub(super) fn stop(&self, why: Error) -> Vec<Submission> {
        let mut state = self.lock();
        state.stopped = Some(why);
        // Dropping a report wakes its sender, which learns that no answer will come.
        state.reports.clear();
        (state.load, state.items) = (Load::default(), 0);
        std::mem::take(&mut state.queued).into_iter().map(|queued| queued.submission).collect()
    }

    /// Takes what this turn may do; submissions go to the end of `taken`. While `progress_only`,
    /// requests stay queued.
    pub(super) fn take(
        &self,
        owner: TurnOwner,
        progress_only: bool,
        taken: &mut VecDeque<Submission>,
    ) -> Messages {
        let mut state = self.lock();
        let mut messages =
            Messages { progress: std::mem::take(&mut state.progress), ..Messages::default() };
        let items_max = match owner {
            TurnOwner::Caller if state.items > CALLER_ITEMS_MAX => return messages,
            TurnOwner::Caller => CALLER_ITEMS_MAX,
            TurnOwner::EngineThread => {
                messages.reports = std::mem::take(&mut state.reports);
                messages.closing = state.closing;
                state.woken = false;
                // The last turn takes everything.
                if state.closing { usize::MAX } else { THREAD_ITEMS_MAX }
            }
        };
        let mut items = 0;
        while !progress_only
            && items < items_max
            && state.queued.front().is_some_and(|next| owner.may_take(next.is_long))
            && let Some(next) = state.queued.pop_front()
        {
            items += next.items;
            state.items -= next.items;
            state.load -= next.load;
            messages.submissions += 1;
            taken.push_back(next.submission);
        }
        messages
    }

    /// The rest, for a thread that ends its turn.
    pub(super) fn rest(&self, owner: TurnOwner, progress_only: bool) -> Rest {
        let state = self.lock();
        let is_thread = owner == TurnOwner::EngineThread;
        if is_thread && (!state.reports.is_empty() || state.closing || state.woken) {
            return Rest::Long;
        }
        if !state.progress.is_empty() {
            return Rest::Short;
        }
        match state.queued.front() {
            Some(_) if progress_only => Rest::Nothing,
            Some(next) if next.is_long || state.items > CALLER_ITEMS_MAX => Rest::Long,
            Some(_) => Rest::Short,
            None => Rest::Nothing,
        }
    }

    /// The engine thread sleeps until it is woken, at most for `timeout`.
    pub(super) fn sleep(&self, timeout: Duration) {
        let mut state = self.lock();
        if state.woken {
            return;
        }
        state.sleeping = true;
        let waited = self.wakeup.wait_timeout_while(state, timeout, |state| !state.woken);
        waited.unwrap_or_else(PoisonError::into_inner).0.sleeping = false;
    }
}

impl TurnOwner {
    fn may_take(self, is_long: bool) -> bool {
        !is_long || self == TurnOwner::EngineThread
    }
}
