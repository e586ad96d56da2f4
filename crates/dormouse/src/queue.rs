//! The handle of a queue.

use std::fmt;
use std::sync::Arc;

use dormouse_core::backend::{Backend, Discard, Request, Sink, Ticket};
use dormouse_core::command::{Command, Operation, Reply, only};
use dormouse_core::error::{Code, Error};
use dormouse_disk::clock::VirtualClock;
use dormouse_disk::engine::Engine;

use crate::call::{Call, Items};
use crate::pending::{Pending, Read};
use crate::retry;

/// A delay queue: put a job now, get it at its time.
///
/// Cheap to clone, and every clone is the same queue; clones may be used by any thread or task.
/// Dropping the last clone closes the store and waits for that, as [`close`](Queue::close) does.
///
/// Each operation is a small value that does nothing until it is awaited (on any runtime), waited
/// for with `.wait()` (blocks the thread) or started with `.send()` (gives a [`Pending`]).
///
/// The calling thread often does the work itself, and may wake tasks that wait for other answers:
/// do not call with a lock held that the waker of such a task takes.
#[derive(Clone)]
pub struct Queue(Arc<Inner>);

struct Inner {
    backend: Arc<dyn Backend>,
    /// The backend that `close` closes.
    opened: Opened,
    /// Set if the queue uses a virtual clock.
    clock: Option<VirtualClock>,
}

/// The backend that this queue opened itself.
enum Opened {
    /// The backend belongs to the caller of `from_backend`.
    Nothing,
    Engine(Engine),
    #[cfg(feature = "connect")]
    Server(Arc<dormouse_client::RemoteBackend>),
    #[cfg(feature = "redis")]
    Redis(Arc<dormouse_redis::RedisBackend>),
}

impl Queue {
    /// A queue over any backend, such as one shared with a server in the same process.
    ///
    /// Closing such a queue does not close the backend, which belongs to the caller.
    pub fn from_backend(backend: Arc<dyn Backend>) -> Queue {
        Queue(Arc::new(Inner { backend, opened: Opened::Nothing, clock: None }))
    }

    pub(crate) fn from_engine(engine: Engine, clock: Option<VirtualClock>) -> Queue {
        let backend = Arc::new(engine.clone());
        Queue(Arc::new(Inner { backend, opened: Opened::Engine(engine), clock }))
    }

    #[cfg(feature = "connect")]
    pub(crate) fn from_server(backend: dormouse_client::RemoteBackend) -> Queue {
        let backend = Arc::new(backend);
        let opened = Opened::Server(Arc::clone(&backend));
        Queue(Arc::new(Inner { backend, opened, clock: None }))
    }

    #[cfg(feature = "redis")]
    pub(crate) fn from_redis(backend: dormouse_redis::RedisBackend) -> Queue {
        let backend = Arc::new(backend);
        let opened = Opened::Redis(Arc::clone(&backend));
        Queue(Arc::new(Inner { backend, opened, clock: None }))
    }

    /// The backend, for commands that have no method here.
    pub fn backend(&self) -> Arc<dyn Backend> {
        self.0.backend.clone()
    }

    /// Closes the store: finishes operations in progress, syncs everything, ends waiting reserves.
    ///
    /// Blocks until that is done. Later operations, also those of other clones, fail with
    /// `unavailable`. A second close does nothing.
    pub fn close(&self) -> Result<(), Error> {
        match &self.0.opened {
            Opened::Nothing => Ok(()),
            Opened::Engine(engine) => engine.close(),
            #[cfg(feature = "connect")]
            Opened::Server(backend) => {
                backend.close();
                Ok(())
            }
            #[cfg(feature = "redis")]
            Opened::Redis(backend) => {
                backend.close();
                Ok(())
            }
        }
    }

    /// Any command of the core crate, also those without a method here. Unlike the methods it gives
    /// nothing back when its future is dropped.
    ///
    /// ```
    /// # use dormouse::Queue;
    /// # use dormouse::core::command::{Command, Reply};
    /// let queue = Queue::memory();
    /// let reply = queue.execute(Command::OpenSession).wait()?;
    /// assert!(matches!(reply, Reply::Session(_)));
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    pub fn execute(&self, command: Command) -> Call<Command, Reply> {
        Call::new(self, Ok(command), |queue, command| {
            Pending::send(queue, command, Read::Plain(Ok))
        })
    }

    /// Whether the jobs are at a server that may go and come back.
    #[cfg(feature = "worker")]
    pub(crate) fn is_remote(&self) -> bool {
        match self.0.opened {
            #[cfg(feature = "connect")]
            Opened::Server(_) => true,
            _ => false,
        }
    }

    /// The virtual clock, if there is one.
    #[cfg(feature = "worker")]
    pub(crate) fn clock(&self) -> Option<&VirtualClock> {
        self.0.clock.as_ref()
    }

    pub(crate) fn call<Op: Operation>(&self, operation: Op) -> Pending<Op::Reply> {
        Pending::send(self, operation.into(), Read::Plain(Op::from_reply))
    }

    /// Sends a batch of one and takes its only reply.
    pub(crate) fn call_one<Op, T>(&self, batch: Op) -> Pending<T>
    where
        Op: Operation<Reply = Items<T>>,
    {
        let read = |reply| only(Op::from_reply(reply)?);
        Pending::send(self, batch.into(), Read::Plain(read))
    }

    pub(crate) fn submit(
        &self,
        ticket: Ticket,
        command: Command,
        sink: Arc<dyn Sink>,
    ) -> Result<(), Error> {
        self.0.backend.submit(vec![Request::new(ticket, command)], sink)
    }

    pub(crate) fn submit_unread(&self, command: Command) -> Result<(), Error> {
        self.submit(Ticket::next(), command, Arc::new(Discard))
    }

    /// Sends a command whose reply nobody waits for, as destructors need.
    pub(crate) fn forget(&self, command: Command) {
        match self.submit_unread(command.clone()) {
            Err(error) if error.code == Code::Busy => retry::submit(self.clone(), Some(command)),
            // Sent, or the store has stopped, which ends leases, sessions and waits anyway.
            _ => {}
        }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("clock", &self.0.clock).finish_non_exhaustive()
    }
}
