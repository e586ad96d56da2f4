//! An operation in progress: a future for any runtime, or for a blocked thread.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Reply, Undo};
use dormouse_core::error::Error;

use crate::block::block_on;
use crate::oneshot::OneShot;
use crate::queue::Queue;

/// An operation that has been sent and is not answered yet.
///
/// It is a future that needs no runtime of its own: await it anywhere, or block the thread with
/// [`wait`](Pending::wait). The operation is already on its way, so dropping a `Pending` gives up
/// the answer and not the operation. The exception is an answer that grants something (a leased
/// job, a session, a lock): the grant is given back.
///
/// ```
/// # use dormouse::Queue;
/// let queue = Queue::memory();
/// // Both puts are in progress at once; their answers are read afterwards.
/// let first = queue.put("mails", "one").send();
/// let second = queue.put("mails", "two").send();
/// assert!(first.wait()?.id < second.wait()?.id);
/// # Ok::<(), dormouse::Error>(())
/// ```
#[must_use = "only the answer says whether the operation succeeded"]
pub struct Pending<T> {
    state: State<T>,
    read: Option<Read<T>>,
    /// Set while an unread answer would leave a grant behind.
    claim: Option<Claim>,
}

enum State<T> {
    /// Answered without being sent.
    Settled(Result<T, Error>),
    Sent(Arc<OneShot>),
    Answered,
}

/// How to give back the grant of an unread answer.
struct Claim {
    queue: Queue,
    ticket: Ticket,
    undo: Undo,
}

/// Turns the backend's reply into the caller's value.
pub(crate) enum Read<T> {
    /// Needs only the reply: the usual case, without an allocation.
    Plain(fn(Reply) -> Result<T, Error>),
    /// Needs captured values.
    With(Box<dyn FnOnce(Reply) -> Result<T, Error> + Send>),
}

impl<T> Pending<T> {
    pub(crate) fn settled(result: Result<T, Error>) -> Pending<T> {
        Pending { state: State::Settled(result), read: None, claim: None }
    }

    pub(crate) fn refused(error: Error) -> Pending<T> {
        Pending::settled(Err(error))
    }

    pub(crate) fn send(queue: &Queue, command: Command, read: Read<T>) -> Pending<T> {
        let oneshot = Arc::new(OneShot::default());
        match queue.submit(Ticket::next(), command, oneshot.clone()) {
            Ok(()) => Pending { state: State::Sent(oneshot), read: Some(read), claim: None },
            Err(error) => Pending::refused(error),
        }
    }

    /// As `send`, for a reply that grants something: if nobody reads it, it is undone.
    pub(crate) fn claim(queue: &Queue, operation: impl Into<Command>, read: Read<T>) -> Pending<T> {
        let command = operation.into();
        let undo = command.undo();
        let (ticket, oneshot) = (Ticket::next(), Arc::new(OneShot::default()));
        match queue.submit(ticket, command, oneshot.clone()) {
            Ok(()) => {
                let claim = Some(Claim { queue: queue.clone(), ticket, undo });
                Pending { state: State::Sent(oneshot), read: Some(read), claim }
            }
            Err(error) => Pending::refused(error),
        }
    }

    /// Blocks the thread until the answer is there. Inside an async task use `.await`: this would
    /// block the runtime's thread.
    pub fn wait(self) -> Result<T, Error> {
        block_on(self)
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, Error>;

    /// # Panics
    ///
    /// When polled again after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, Error>> {
        let this = self.get_mut();
        if let State::Sent(oneshot) = &this.state {
            let Poll::Ready(answer) = oneshot.poll(cx) else { return Poll::Pending };
            this.state = State::Answered;
            this.claim = None;
            return Poll::Ready(match (answer, this.read.take()) {
                (Ok(reply), Some(Read::Plain(read))) => read(reply),
                (Ok(reply), Some(Read::With(read))) => read(reply),
                (Err(error), _) => Err(error),
                // Only `settled` has nothing to read with, and it is never in the state `Sent`.
                (Ok(_), None) => unreachable!("a sent operation knows how to read its reply"),
            });
        }
        match std::mem::replace(&mut this.state, State::Answered) {
            State::Settled(result) => Poll::Ready(result),
            _ => panic!("a Pending was polled after it had given its answer"),
        }
    }
}

// Nothing in it is pinned: values are moved out, and the closure in `Read` is called by value.
impl<T> Unpin for Pending<T> {}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        let (State::Sent(oneshot), Some(claim)) = (&self.state, self.claim.take()) else { return };
        let Claim { queue, ticket, undo } = claim;
        match oneshot.abandon(&queue, undo) {
            // Waiting, or about to be answered: the oneshot gives back a grant that still arrives.
            Ok(()) => queue.forget(Command::Withdraw(ticket)),
            // It was already answered.
            Err(Some(command)) => queue.forget(command),
            Err(None) => {}
        }
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Settled(_) => "settled",
            State::Sent(_) => "sent",
            State::Answered => "answered",
        };
        f.debug_tuple("Pending").field(&format_args!("{state}")).finish()
    }
}
