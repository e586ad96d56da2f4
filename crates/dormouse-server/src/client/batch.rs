//! A batch of commands under way, whose replies are awaited together.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use dormouse_core::backend::{Answer, Request, Sink, Ticket};
use dormouse_core::command::{Command, Undo};
use dormouse_core::error::Error;

use super::BackendClient;
use super::custody::give_back;

/// A batch that was submitted; resolves to one reply per command, in order. Dropping it withdraws
/// the commands that wait and gives back what was granted.
#[must_use = "the replies tell what happened"]
pub(crate) struct PendingBatch {
    sink: Arc<BatchSink>,
    may_wait: bool,
    is_withdrawn: bool,
}

/// The reply to one command of a batch.
pub(crate) struct BatchReply {
    pub(crate) answer: Answer,
    /// How to give back what the answer grants.
    pub(crate) undo: Undo,
}

impl BatchReply {
    /// The reply to a command of a batch that was not accepted.
    pub(crate) fn refused(error: &Error) -> BatchReply {
        BatchReply { answer: Err(error.clone()), undo: Undo::Nothing }
    }
}

struct BatchSink {
    client: BackendClient,
    state: Mutex<State>,
}

struct State {
    /// The ticket of the first command; those of the others follow in a row.
    first: Ticket,
    entries: Vec<Entry>,
    missing: usize,
    waker: Option<Waker>,
    /// Nobody will read the replies.
    is_abandoned: bool,
}

struct Entry {
    may_wait: bool,
    undo: Undo,
    answer: Option<Answer>,
}

impl PendingBatch {
    pub(super) fn submit(
        client: &BackendClient,
        commands: Vec<Command>,
    ) -> Result<PendingBatch, Error> {
        let entries: Vec<Entry> = commands.iter().map(Entry::new).collect();
        let may_wait = entries.iter().any(|entry| entry.may_wait);
        let first = Ticket::row(entries.len());
        let tickets = (first.0..).map(Ticket);
        let requests =
            tickets.zip(commands).map(|(ticket, command)| Request { ticket, command }).collect();
        let missing = entries.len();
        let state = State { first, entries, missing, waker: None, is_abandoned: false };
        let sink = Arc::new(BatchSink { client: client.clone(), state: Mutex::new(state) });
        client.inner.send(requests, Arc::clone(&sink) as Arc<dyn Sink>)?;
        Ok(PendingBatch { sink, may_wait, is_withdrawn: false })
    }

    /// Whether the backend may hold a reply back until something happens.
    pub(crate) fn may_wait(&self) -> bool {
        self.may_wait
    }

    /// Ends the wait of every waiting command with an empty reply; the batch has still to be
    /// awaited.
    pub(crate) fn withdraw(&mut self) {
        if mem::replace(&mut self.is_withdrawn, true) {
            return;
        }
        let withdrawals = self.sink.lock().withdrawals();
        give_back(&self.sink.client, withdrawals);
    }
}

impl Future for PendingBatch {
    type Output = Vec<BatchReply>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Vec<BatchReply>> {
        let mut state = self.sink.lock();
        if state.missing > 0 {
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let entries = mem::take(&mut state.entries);
        drop(state);
        let replies: Vec<BatchReply> = entries.into_iter().filter_map(Entry::into_reply).collect();
        let observer = &self.sink.client.inner.observer;
        replies.iter().flat_map(|reply| &reply.answer).for_each(|reply| observer.observe(reply));
        Poll::Ready(replies)
    }
}

impl Drop for PendingBatch {
    fn drop(&mut self) {
        let mut state = self.sink.lock();
        state.is_abandoned = true;
        let mut commands = if self.is_withdrawn { Vec::new() } else { state.withdrawals() };
        commands.extend(state.entries.iter_mut().filter_map(Entry::undo));
        drop(state);
        give_back(&self.sink.client, commands);
    }
}

impl BatchSink {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The commands that withdraw what has no reply yet and may wait.
    fn withdrawals(&self) -> Vec<Command> {
        let tickets = (self.first.0..).map(Ticket).zip(&self.entries);
        let unanswered = tickets.filter(|(_, entry)| entry.may_wait && entry.answer.is_none());
        unanswered.map(|(ticket, _)| Command::Withdraw(ticket)).collect()
    }
}

impl Entry {
    fn new(command: &Command) -> Entry {
        Entry { may_wait: command.may_wait(), undo: command.undo(), answer: None }
    }

    fn into_reply(self) -> Option<BatchReply> {
        Some(BatchReply { answer: self.answer?, undo: self.undo })
    }

    /// The command that gives back a grant that nobody will read.
    fn undo(&mut self) -> Option<Command> {
        let reply = self.answer.take()?.ok()?;
        mem::replace(&mut self.undo, Undo::Nothing).command(&reply)
    }
}

impl Sink for BatchSink {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        let mut state = self.lock();
        let mut unread = Vec::new();
        for (ticket, answer) in answers.drain(..) {
            let state = &mut *state;
            let index = usize::try_from(ticket.0.wrapping_sub(state.first.0)).ok();
            let entry = index.and_then(|index| state.entries.get_mut(index));
            let Some(entry) = entry else { continue };
            if entry.answer.is_none() {
                state.missing -= 1;
            }
            entry.answer = Some(answer);
            if state.is_abandoned {
                unread.extend(entry.undo());
            }
        }
        let waker = if state.missing == 0 { state.waker.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            self.client.inner.wake(waker);
        }
        give_back(&self.client, unread);
    }
}
