//! The seam above the rules: whole operations in, answers out; and the parts that backends share.

mod admission;
mod events;
mod replies;
mod round;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use crate::command::{Command, Reply};
use crate::error::Error;
use crate::event::Watcher;
use crate::holder::HolderId;
use crate::meter::Meter;

pub use admission::{Admission, Load};
pub use events::EventSink;
pub use replies::ReplyGroups;
pub use round::at_end_of_round;

/// Names one request until it is answered; unique in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

impl Ticket {
    /// A new ticket.
    pub fn next() -> Ticket {
        Ticket::row(1)
    }

    /// The first of `count` new tickets with consecutive numbers.
    pub fn row(count: usize) -> Ticket {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Ticket(NEXT.fetch_add(count as u64, Ordering::Relaxed))
    }
}

/// The result of a request.
pub type Answer = Result<Reply, Error>;

/// One operation and the name its answer will carry.
#[derive(Debug)]
pub struct Request {
    /// Tags the answer.
    pub ticket: Ticket,
    /// The operation.
    pub command: Command,
    /// For whom leases and locks count that it takes; `None` = for nobody, and no share bounds
    /// them: the program that has the queue in it is trusted.
    pub holder: Option<HolderId>,
}

impl Request {
    /// Whose leases and locks count for nobody.
    pub fn new(ticket: Ticket, command: Command) -> Request {
        Request { ticket, command, holder: None }
    }
}

/// Where answers go. Called from the backend's threads, so it must be quick and never block.
pub trait Sink: Send + Sync {
    /// Takes some answers of this sink's requests: those that became final together.
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>);
}

/// Drops all answers, for requests whose answers are not read.
pub struct Discard;

impl Sink for Discard {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        answers.clear();
    }
}

/// Passes answers through a channel; without a receiver they are dropped.
impl Sink for Sender<(Ticket, Answer)> {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        for answer in answers.drain(..) {
            let _ = self.send(answer);
        }
    }
}

/// An implementation of all operations.
///
/// A batch is applied in order, without other batches in between. Each request is answered exactly
/// once; a mutation after it is durable, a waiting reserve when it has jobs, when its wait is over
/// or when it is withdrawn (`Command::Withdraw`).
pub trait Backend: Send + Sync {
    /// Hands over a batch. `busy` or `unavailable` means that nothing of it was taken. The calling
    /// thread may do the work, and deliver answers to this and other sinks before it returns: do
    /// not call it with a lock held that a sink, or the waker of a task, takes.
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error>;

    /// As `submit`, but leaves the work to the next [`Backend::drive`], which has to follow: a
    /// server hands over the requests of many connections first.
    fn defer(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        self.submit(batch, sink)
    }

    /// Does what was deferred, as far as this thread can without waiting. Cheap if there is
    /// nothing.
    fn drive(&self) {}

    /// The backend's meters, now. Cheap enough to be read every second.
    fn meters(&self) -> Vec<Meter> {
        Vec::new()
    }

    /// What an operator should know though the backend works; it names no addresses, for everybody
    /// may read it.
    fn concern(&self) -> Option<String> {
        None
    }

    /// From now on this watcher, and no other, gets events; `None` = no watcher. Events come
    /// in order, each after it is as durable as promised, and before answers that wait for that.
    /// Events of commands under way when it is set or removed may be missing.
    fn watch(&self, _watcher: Option<Arc<dyn Watcher>>) {}
}
