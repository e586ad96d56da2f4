//! The client of the backend: every protocol sends its commands through it.
//!
//! A request that is dropped while it is under way, because its client disconnected, leaves nothing
//! behind: a waiting command is withdrawn, granted leases and locks are given back.

mod batch;
mod custody;
mod drive;
mod figures;
mod wait;

use std::sync::Arc;
use std::task::Waker;

use dormouse_core::backend::{Backend, Request, Sink, Ticket};
use dormouse_core::command::{Command, Operation, Reply};
use dormouse_core::error::Error;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::holder::Holder;

pub(crate) use batch::{BatchReplies, PendingBatch};
pub(crate) use custody::Custody;
use drive::DriveTask;
use wait::Wait;
pub(crate) use wait::Waiter;

/// A handle to the backend. Cheap to clone: every request does.
#[derive(Clone)]
pub(crate) struct BackendClient {
    inner: Arc<Inner>,
}

struct Inner {
    backend: Arc<dyn Backend>,
    /// `None` = every submission is driven at once, on the thread that submits.
    drive: Option<DriveTask>,
    observer: Arc<dyn ReplyObserver>,
    stopping: watch::Receiver<bool>,
    runtime: Handle,
    /// Submissions that give something back and that the backend has not accepted yet: a stop
    /// waits for them.
    returning: watch::Sender<usize>,
}

/// Sees every reply that a protocol receives; replies that nobody reads are left out.
pub(crate) trait ReplyObserver: Send + Sync {
    fn observe(&self, reply: &Reply);
}

impl BackendClient {
    /// When `stopping` turns true, waiting commands are answered with an empty reply. Must be
    /// called within a tokio runtime.
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        observer: Arc<dyn ReplyObserver>,
        stopping: watch::Receiver<bool>,
    ) -> BackendClient {
        BackendClient::with_drive(backend, observer, stopping, None)
    }

    /// As `new`, for a runtime of one thread: the backend is driven once for all tasks that are
    /// ready. Where tasks may take their thread for long, others would wait for the drive.
    pub(crate) fn deferring(
        backend: Arc<dyn Backend>,
        observer: Arc<dyn ReplyObserver>,
        stopping: watch::Receiver<bool>,
    ) -> BackendClient {
        let drive = DriveTask::start(Arc::clone(&backend));
        BackendClient::with_drive(backend, observer, stopping, Some(drive))
    }

    fn with_drive(
        backend: Arc<dyn Backend>,
        observer: Arc<dyn ReplyObserver>,
        stopping: watch::Receiver<bool>,
        drive: Option<DriveTask>,
    ) -> BackendClient {
        let (runtime, returning) = (Handle::current(), watch::Sender::new(0));
        let inner = Inner { backend, drive, observer, stopping, runtime, returning };
        BackendClient { inner: Arc::new(inner) }
    }

    /// Submits requests as one batch; make them with `unnumbered`.
    /// Leases and locks that they take count for this holder.
    pub(crate) fn submit(
        &self,
        requests: Vec<Request>,
        holder: Option<&Holder>,
    ) -> Result<PendingBatch, Error> {
        PendingBatch::submit(self, requests, holder)
    }

    /// As `submit`; while reserves of the batch wait, the waiter knows.
    pub(crate) fn submit_of(
        &self,
        waiter: Option<&Arc<impl Waiter + 'static>>,
        requests: Vec<Request>,
        holder: Option<&Holder>,
    ) -> Result<PendingBatch, Error> {
        let wait = waiter.and_then(|waiter| Wait::of(waiter, &requests));
        let mut batch = self.submit(requests, holder)?;
        batch.wait = wait;
        Ok(batch)
    }

    /// Sends one operation that takes no lease or lock, and waits for its reply.
    pub(crate) async fn call<O: Operation>(&self, operation: O) -> Result<O::Reply, Error> {
        let mut replies = self.submit(vec![unnumbered(operation)], None)?.await;
        O::from_reply(replies.next_answer()?)
    }

    /// Waits for the replies of a batch; a stop of the server withdraws its waiting commands.
    pub(crate) async fn wait(&self, batch: &mut PendingBatch) -> BatchReplies {
        let mut stopping = self.inner.stopping.clone();
        tokio::select! {
            biased;
            replies = &mut *batch => return replies,
            _ = stopping.wait_for(|&stopping| stopping) => {}
        }
        batch.withdraw();
        batch.await
    }

    /// Submits commands whose replies nobody reads; tries again while the backend is busy.
    pub(crate) fn submit_unread(&self, commands: Vec<Command>) {
        custody::give_back(self, commands);
    }

    /// Resolves when the backend has accepted everything that is given back.
    pub(crate) async fn given_back(&self) {
        // The sender is in `inner`, so this cannot fail.
        let _ = self.inner.returning.subscribe().wait_for(|&count| count == 0).await;
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.inner.stopping.borrow()
    }

    /// Turns true when the server stops.
    pub(crate) fn stop_signal(&self) -> watch::Receiver<bool> {
        self.inner.stopping.clone()
    }

    /// Resolves when the server stops.
    pub(crate) async fn stopping(&self) {
        // An error means that the server is gone already.
        let _ = self.inner.stopping.clone().wait_for(|&stopping| stopping).await;
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.inner.backend
    }
}

impl Inner {
    /// Hands requests to the backend.
    fn send(&self, requests: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        let Some(drive) = &self.drive else { return self.backend.submit(requests, sink) };
        self.backend.defer(requests, sink)?;
        drive.plan();
        Ok(())
    }

    /// Wakes a task whose replies are complete.
    fn wake(&self, waker: Waker) {
        match &self.drive {
            Some(drive) => drive.wake(waker),
            None => waker.wake(),
        }
    }
}

/// A request for `BackendClient::submit`, which gives it its ticket.
pub(crate) fn unnumbered(command: impl Into<Command>) -> Request {
    Request::new(Ticket(0), command.into())
}

/// The error for a backend that answers fewer commands than it was given: nobody may hang or panic.
pub(crate) fn no_reply() -> Error {
    Error::unavailable("the backend gave no answer; ask again")
}
