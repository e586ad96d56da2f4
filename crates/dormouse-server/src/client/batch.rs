//! Commands under way, awaited together.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use dormouse_core::backend::{Answer, Request, Sink, Ticket};
use dormouse_core::command::Command;
use dormouse_core::error::Error;
use dormouse_core::op::Unlock;

use super::BackendClient;
use super::custody::{give_back, undo};

/// A batch that was sent. Dropping it withdraws what waits and gives back what was granted.
#[must_use = "the answers tell what happened"]
pub(crate) struct PendingBatch {
    slot: Arc<BatchSink>,
    withdrawn: bool,
}

struct BatchSink {
    client: BackendClient,
    state: Mutex<State>,
}

struct State {
    /// The first item's ticket; the others follow in a row.
    first: Ticket,
    items: Vec<Entry>,
    missing: usize,
    waker: Option<Waker>,
    /// Nobody will read the answers.
    abandoned: bool,
}

struct Entry {
    /// It may wait in the backend.
    waits: bool,
    /// How to give back a lock that was granted.
    unlock: Option<Unlock>,
    answer: Option<Answer>,
}

impl PendingBatch {
    pub(super) fn send(
        client: &BackendClient,
        commands: Vec<Command>,
    ) -> Result<PendingBatch, Error> {
        let items: Vec<Entry> = commands.iter().map(Entry::new).collect();
        let first = Ticket::row(items.len());
        let tickets = (first.0..).map(Ticket);
        let requests =
            tickets.zip(commands).map(|(ticket, command)| Request { ticket, command }).collect();
        let state = State { first, missing: items.len(), items, waker: None, abandoned: false };
        let slot = Arc::new(BatchSink { client: client.clone(), state: Mutex::new(state) });
        client.inner.backend.submit(requests, Arc::clone(&slot) as Arc<dyn Sink>)?;
        Ok(PendingBatch { slot, withdrawn: false })
    }

    /// Answers what waits with nothing; the answers still have to be awaited.
    pub(crate) fn withdraw(&mut self) {
        if mem::replace(&mut self.withdrawn, true) {
            return;
        }
        let waiting = self.slot.lock().waiting();
        give_back(&self.slot.client, waiting);
    }
}

impl Future for PendingBatch {
    type Output = Vec<Answer>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Vec<Answer>> {
        let mut state = self.slot.lock();
        if state.missing > 0 {
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let items = mem::take(&mut state.items);
        Poll::Ready(items.into_iter().filter_map(|item| item.answer).collect())
    }
}

impl Drop for PendingBatch {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        state.abandoned = true;
        let mut commands = if self.withdrawn { Vec::new() } else { state.waiting() };
        commands.extend(state.items.iter_mut().filter_map(Entry::undo));
        drop(state);
        give_back(&self.slot.client, commands);
    }
}

impl BatchSink {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn waiting(&self) -> Vec<Command> {
        let tickets = (self.first.0..).map(Ticket).zip(&self.items);
        let unanswered = tickets.filter(|(_, item)| item.waits && item.answer.is_none());
        unanswered.map(|(ticket, _)| Command::Withdraw(ticket)).collect()
    }
}

impl Entry {
    fn new(command: &Command) -> Entry {
        let (waits, unlock) = (may_wait(command), unlock_of(command));
        Entry { waits, unlock, answer: None }
    }

    /// What gives back the grant that nobody will read.
    fn undo(&mut self) -> Option<Command> {
        let reply = self.answer.take()?.ok()?;
        undo(&reply, self.unlock.take())
    }
}

impl Sink for BatchSink {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        let mut state = self.lock();
        let mut refused = Vec::new();
        for (ticket, answer) in answers.drain(..) {
            let state = &mut *state;
            let index = usize::try_from(ticket.0.wrapping_sub(state.first.0)).ok();
            let Some(item) = index.and_then(|index| state.items.get_mut(index)) else { continue };
            if item.answer.is_none() {
                state.missing -= 1;
            }
            item.answer = Some(answer);
            if state.abandoned {
                refused.extend(item.undo());
            }
        }
        let waker = if state.missing == 0 { state.waker.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        give_back(&self.client, refused);
    }
}

/// Whether a command may wait in the backend.
pub(crate) fn may_wait(command: &Command) -> bool {
    match command {
        Command::Reserve(reserve) => reserve.wait_ms > 0,
        Command::Lock(lock) => lock.wait_ms > 0,
        _ => false,
    }
}

/// How to give back what a lock grants.
pub(crate) fn unlock_of(command: &Command) -> Option<Unlock> {
    match command {
        Command::Lock(lock) => Some(Unlock { name: lock.name.clone(), owner: lock.owner.clone() }),
        _ => None,
    }
}
