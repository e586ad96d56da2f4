//! A batch of commands under way, whose replies are awaited together.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use dormouse_core::backend::{Answer, Request, Sink, Ticket};
use dormouse_core::command::{Command, Reply, Undo};
use dormouse_core::error::Error;

use super::custody::give_back;
use super::wait::Wait;
use super::{BackendClient, Custody, no_reply};
use crate::holder::Holder;

/// A batch that was submitted; resolves to one reply per command, in order. Dropping it withdraws
/// the commands that wait and gives back what was granted.
#[must_use = "the replies tell what happened"]
pub(crate) struct PendingBatch {
    sink: Arc<BatchSink>,
    may_wait: bool,
    may_grant: bool,
    is_withdrawn: bool,
    /// The replies were taken: there is nothing left to give back.
    is_resolved: bool,
    /// Its reserves that may wait, for those who want to know who waits.
    pub(super) wait: Option<Wait>,
}

/// The replies to a batch, in order. Dropping it gives back what the remaining ones grant.
#[must_use = "dropping it gives back what was granted"]
pub(crate) struct BatchReplies {
    /// They stay here until each is taken: moving large replies costs more than the lock.
    sink: Arc<BatchSink>,
    /// The number of those taken.
    taken: usize,
}

struct BatchSink {
    client: BackendClient,
    state: Mutex<State>,
}

struct State {
    /// The ticket of the first command; those of the others follow in a row.
    first: Ticket,
    entries: Entries,
    missing: usize,
    waker: Option<Waker>,
    /// Nobody will read the replies.
    is_abandoned: bool,
    /// For whom leases and locks count that the commands take.
    holder: Option<Holder>,
}

/// The commands of a batch, in order. Most batches have one, which needs no list.
struct Entries {
    first: Option<Entry>,
    others: Vec<Entry>,
}

struct Entry {
    may_wait: bool,
    undo: Undo,
    answer: Option<Answer>,
}

impl PendingBatch {
    /// Numbers the requests, and hands them to the backend.
    pub(super) fn submit(
        client: &BackendClient,
        mut requests: Vec<Request>,
        holder: Option<&Holder>,
    ) -> Result<PendingBatch, Error> {
        let first = Ticket::row(requests.len());
        for (ticket, request) in (first.0..).map(Ticket).zip(&mut requests) {
            request.ticket = ticket;
            request.holder = holder.map(Holder::id);
        }
        let entries = Entries::new(requests.iter().map(|request| Entry::new(&request.command)));
        let may_wait = entries.iter().any(|entry| entry.may_wait);
        let may_grant = entries.iter().any(|entry| entry.undo != Undo::Nothing);
        let sink = BatchSink::new(client, first, entries, requests.len(), holder.cloned());
        client.inner.send(requests, Arc::clone(&sink) as Arc<dyn Sink>)?;
        let (is_withdrawn, is_resolved, wait) = (false, false, None);
        Ok(PendingBatch { sink, may_wait, may_grant, is_withdrawn, is_resolved, wait })
    }

    /// Whether the backend may hold a reply back until something happens.
    pub(crate) fn may_wait(&self) -> bool {
        self.may_wait
    }

    /// Whether a reply may grant something that has to be given back if the client is gone.
    pub(crate) fn may_grant(&self) -> bool {
        self.may_grant
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
    type Output = BatchReplies;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<BatchReplies> {
        let mut state = self.sink.lock();
        if state.missing > 0 {
            state.waker = Some(cx.waker().clone());
            drop(state);
            if let Some(wait) = &mut self.wait {
                wait.begin();
            }
            return Poll::Pending;
        }
        for reply in state.entries.iter().filter_map(Entry::reply) {
            self.sink.client.inner.observer.observe(reply);
        }
        drop(state);
        self.wait = None;
        self.is_resolved = true;
        Poll::Ready(BatchReplies { sink: Arc::clone(&self.sink), taken: 0 })
    }
}

impl Drop for PendingBatch {
    fn drop(&mut self) {
        if self.is_resolved {
            return;
        }
        let mut state = self.sink.lock();
        state.is_abandoned = true;
        let mut commands = if self.is_withdrawn { Vec::new() } else { state.withdrawals() };
        commands.extend(state.entries.iter_mut().filter_map(Entry::undo));
        drop(state);
        give_back(&self.sink.client, commands);
    }
}

impl BatchReplies {
    /// The replies to a batch that was not accepted.
    pub(crate) fn refused(client: &BackendClient, error: &Error, count: usize) -> BatchReplies {
        let entry =
            || Entry { may_wait: false, undo: Undo::Nothing, answer: Some(Err(error.clone())) };
        let entries = Entries::new(std::iter::repeat_with(entry).take(count));
        BatchReplies { sink: BatchSink::new(client, Ticket(0), entries, 0, None), taken: 0 }
    }

    /// Takes the next reply, with what undoes its command.
    fn take(&mut self) -> Option<(Answer, Undo)> {
        let mut state = self.sink.lock();
        let entry = state.entries.get_mut(self.taken)?;
        self.taken += 1;
        Some((entry.answer.take()?, mem::replace(&mut entry.undo, Undo::Nothing)))
    }

    /// The next reply, with custody of what it grants.
    pub(crate) fn next(&mut self) -> (Answer, Option<Custody>) {
        let Some((answer, undo)) = self.take() else { return (Err(no_reply()), None) };
        let granted = answer.as_ref().ok();
        let custody = granted.and_then(|reply| Custody::of_reply(&self.sink.client, reply, undo));
        (answer, custody)
    }

    /// The next reply; what it grants is the caller's from now on.
    pub(crate) fn next_answer(&mut self) -> Answer {
        self.take().map_or_else(|| Err(no_reply()), |(answer, _)| answer)
    }

    /// Replaces replies by the errors that `judge` finds, and gives back what they grant.
    pub(crate) fn refuse_some(&mut self, mut judge: impl FnMut(&Reply) -> Result<(), Error>) {
        for entry in self.sink.lock().entries.iter_mut() {
            let Some(Err(error)) = entry.reply().map(&mut judge) else { continue };
            give_back(&self.sink.client, entry.undo().into_iter().collect());
            entry.answer = Some(Err(error));
        }
    }
}

impl Drop for BatchReplies {
    fn drop(&mut self) {
        let undo = self.sink.lock().entries.iter_mut().filter_map(Entry::undo).collect();
        give_back(&self.sink.client, undo);
    }
}

impl BatchSink {
    /// So many of the answers are missing.
    fn new(
        client: &BackendClient,
        first: Ticket,
        entries: Entries,
        missing: usize,
        holder: Option<Holder>,
    ) -> Arc<BatchSink> {
        let state = State { first, entries, missing, waker: None, is_abandoned: false, holder };
        Arc::new(BatchSink { client: client.clone(), state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The commands that withdraw what has no reply yet and may wait.
    fn withdrawals(&self) -> Vec<Command> {
        let tickets = (self.first.0..).map(Ticket).zip(self.entries.iter());
        let unanswered = tickets.filter(|(_, entry)| entry.may_wait && entry.answer.is_none());
        unanswered.map(|(ticket, _)| Command::Withdraw(ticket)).collect()
    }
}

impl Entries {
    fn new(mut entries: impl Iterator<Item = Entry>) -> Entries {
        Entries { first: entries.next(), others: entries.collect() }
    }

    fn get_mut(&mut self, index: usize) -> Option<&mut Entry> {
        match index.checked_sub(1) {
            None => self.first.as_mut(),
            Some(index) => self.others.get_mut(index),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.first.iter().chain(&self.others)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.first.iter_mut().chain(&mut self.others)
    }
}

impl Entry {
    fn new(command: &Command) -> Entry {
        Entry { may_wait: command.may_wait(), undo: command.undo(), answer: None }
    }

    /// The reply, unless there is none yet or it is an error.
    fn reply(&self) -> Option<&Reply> {
        self.answer.as_ref()?.as_ref().ok()
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
        for (ticket, mut answer) in answers.drain(..) {
            let state = &mut *state;
            let index = usize::try_from(ticket.0.wrapping_sub(state.first.0)).ok();
            let entry = index.and_then(|index| state.entries.get_mut(index));
            let Some(entry) = entry else { continue };
            if entry.answer.is_none() {
                // A second answer to one command, which no backend gives, finds none missing.
                state.missing = state.missing.saturating_sub(1);
            }
            if let Some(holder) = &state.holder {
                holder.name_in(&mut answer);
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
