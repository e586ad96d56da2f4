//! Passes one answer from the backend to one reader.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use dormouse_core::backend::{Answer, Sink, Ticket};
use dormouse_core::command::{Command, Undo};

use crate::queue::Queue;
use crate::retry;

/// A one-shot: the backend fills it, a [`Pending`](crate::Pending) reads it. It is itself the sink
/// of its only request, so a call costs one allocation here.
#[derive(Default)]
pub(crate) struct OneShot(Mutex<State>);

#[derive(Default)]
enum State {
    /// No answer, and not polled yet.
    #[default]
    Empty,
    /// No answer; the reader is to be woken.
    Watched(Waker),
    /// The answer, unread.
    Full(Answer),
    /// No answer yet, and it will not be read.
    Abandoned(Queue, Undo),
    /// The answer was read or undone.
    Closed,
}

impl OneShot {
    /// Takes the answer, or registers the caller to be woken.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Answer> {
        let mut state = self.lock();
        match &mut *state {
            State::Watched(waker) => waker.clone_from(cx.waker()),
            State::Full(_) => {
                if let State::Full(answer) = mem::replace(&mut *state, State::Closed) {
                    return Poll::Ready(answer);
                }
            }
            other => *other = State::Watched(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Declares that the answer will not be read. `Ok`: it has not arrived and will be undone then.
    /// `Err`: it is here, and this command undoes it.
    pub(crate) fn abandon(&self, queue: &Queue, undo: Undo) -> Result<(), Option<Command>> {
        let mut state = self.lock();
        match mem::replace(&mut *state, State::Closed) {
            State::Empty | State::Watched(_) => {
                *state = State::Abandoned(queue.clone(), undo);
                Ok(())
            }
            State::Full(Ok(reply)) => Err(undo.command(&reply)),
            State::Full(Err(_)) | State::Abandoned(..) | State::Closed => Err(None),
        }
    }

    fn fill(&self, answer: Answer) {
        let mut state = self.lock();
        match mem::replace(&mut *state, State::Closed) {
            State::Empty => *state = State::Full(answer),
            State::Watched(waker) => {
                *state = State::Full(answer);
                drop(state);
                waker.wake();
            }
            State::Abandoned(queue, undo) => {
                drop(state);
                // This is the backend's thread: it must neither submit to itself nor drop the
                // last handle to the backend.
                retry::submit(queue, answer.ok().and_then(|reply| undo.command(&reply)));
            }
            // A second answer is a fault of the backend; the first one counts.
            first @ (State::Full(_) | State::Closed) => *state = first,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held, and the state is consistent at every instant.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for OneShot {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        for (_, answer) in answers.drain(..) {
            self.fill(answer);
        }
    }
}
