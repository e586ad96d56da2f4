//! Where one answer arrives and one reader finds it.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use dormouse_core::backend::{Answer, Sink, Ticket};
use dormouse_core::command::Command;

use crate::later;
use crate::queue::Queue;
use crate::undo::Undo;

/// A one-shot: the backend fills it, a [`Pending`](crate::Pending) reads it. It is itself the sink
/// of its only request, so a call costs one allocation here.
#[derive(Default)]
pub(crate) struct Slot(Mutex<Cell>);

#[derive(Default)]
enum Cell {
    /// No answer, and nobody looked.
    #[default]
    Empty,
    /// No answer; somebody wants to know.
    Watched(Waker),
    /// The answer, unread.
    Full(Answer),
    /// No answer yet, and nobody will read it.
    Abandoned(Queue, Undo),
    /// The answer was read or undone.
    Closed,
}

impl Slot {
    /// The answer, once; wakes the caller when it comes.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Answer> {
        let mut cell = self.lock();
        match &mut *cell {
            Cell::Watched(waker) => waker.clone_from(cx.waker()),
            Cell::Full(_) => {
                if let Cell::Full(answer) = mem::replace(&mut *cell, Cell::Closed) {
                    return Poll::Ready(answer);
                }
            }
            other => *other = Cell::Watched(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Nobody will read the answer. `Ok`: it is still to come and will be undone then. `Err`: it
    /// is here, and this command undoes it.
    pub(crate) fn abandon(&self, queue: &Queue, undo: Undo) -> Result<(), Option<Command>> {
        let mut cell = self.lock();
        match mem::replace(&mut *cell, Cell::Closed) {
            Cell::Empty | Cell::Watched(_) => {
                *cell = Cell::Abandoned(queue.clone(), undo);
                Ok(())
            }
            Cell::Full(Ok(reply)) => Err(undo.command(reply)),
            Cell::Full(Err(_)) | Cell::Abandoned(..) | Cell::Closed => Err(None),
        }
    }

    fn fill(&self, answer: Answer) {
        let mut cell = self.lock();
        match mem::replace(&mut *cell, Cell::Closed) {
            Cell::Empty => *cell = Cell::Full(answer),
            Cell::Watched(waker) => {
                *cell = Cell::Full(answer);
                drop(cell);
                waker.wake();
            }
            Cell::Abandoned(queue, undo) => {
                drop(cell);
                // This is the backend's thread: it must neither be asked from here nor find the
                // last handle to itself in its own hands.
                later::submit(queue, answer.ok().and_then(|reply| undo.command(reply)));
            }
            // A second answer breaks the backend's promise; the first one holds.
            first @ (Cell::Full(_) | Cell::Closed) => *cell = first,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Cell> {
        // Nothing panics while it is held; a cell is whole at every instant anyway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Slot {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        for (_, answer) in answers.drain(..) {
            self.fill(answer);
        }
    }
}

/// For requests whose answer interests nobody.
pub(crate) struct Discard;

impl Sink for Discard {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        answers.clear();
    }
}
