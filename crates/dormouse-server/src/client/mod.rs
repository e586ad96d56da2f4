//! The client: the one door from every protocol to the backend.
//!
//! A request that is dropped while it is under way (its client went away) leaves nothing in
//! nobody's hands: what waits is withdrawn, what was granted is given back.

mod batch;
mod custody;

use std::sync::Arc;

use dormouse_core::backend::{Answer, Backend};
use dormouse_core::command::{Command, Operation, Reply};
use dormouse_core::error::Error;
use tokio::runtime::Handle;
use tokio::sync::watch;

pub(crate) use batch::{PendingBatch, may_wait, unlock_of};
pub(crate) use custody::Custody;

/// The door to a backend. Cheap to clone: every request does.
#[derive(Clone)]
pub(crate) struct BackendClient {
    inner: Arc<Inner>,
}

struct Inner {
    backend: Arc<dyn Backend>,
    stopping: watch::Receiver<bool>,
    runtime: Handle,
    /// Gifts that go back just now: a stop waits for them.
    returning: watch::Sender<usize>,
}

impl BackendClient {
    /// A client before this backend. When `stopping` turns true, waiting requests are answered with
    /// nothing. Must be called within a tokio runtime.
    pub(crate) fn new(backend: Arc<dyn Backend>, stopping: watch::Receiver<bool>) -> BackendClient {
        let (runtime, returning) = (Handle::current(), watch::Sender::new(0));
        BackendClient { inner: Arc::new(Inner { backend, stopping, runtime, returning }) }
    }

    /// Sends commands as one batch.
    pub(crate) fn send(&self, commands: Vec<Command>) -> Result<PendingBatch, Error> {
        PendingBatch::send(self, commands)
    }

    /// Sends one operation and waits for its reply.
    pub(crate) async fn call<O: Operation>(&self, operation: O) -> Result<O::Reply, Error> {
        let mut answers = self.send(vec![operation.into()])?.await;
        O::from_reply(answers.pop().unwrap_or_else(|| Err(no_reply()))?)
    }

    /// As `call`, for an operation that may wait: a stop of the server ends the wait.
    pub(crate) async fn call_waiting<O: Operation>(&self, operation: O) -> Result<O::Reply, Error> {
        let mut answers = self.wait(self.send(vec![operation.into()])?).await;
        O::from_reply(answers.pop().unwrap_or_else(|| Err(no_reply()))?)
    }

    /// Waits for answers; a stop of the server withdraws what waits.
    pub(crate) async fn wait(&self, mut asked: PendingBatch) -> Vec<Answer> {
        let mut stopping = self.inner.stopping.clone();
        tokio::select! {
            biased;
            answers = &mut asked => return answers,
            _ = stopping.wait_for(|&stopping| stopping) => {}
        }
        asked.withdraw();
        asked.await
    }

    /// Resolves when everything that was to be given back is in the backend's hands.
    pub(crate) async fn given_back(&self) {
        // The sender is ours, so it is there.
        let _ = self.inner.returning.subscribe().wait_for(|&count| count == 0).await;
    }

    /// Whether the server is going down.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.inner.stopping.borrow()
    }

    /// Turns true when the server goes down.
    pub(crate) fn stop_signal(&self) -> watch::Receiver<bool> {
        self.inner.stopping.clone()
    }

    /// Resolves when the server goes down.
    pub(crate) async fn stopping(&self) {
        // An error means that the server is gone already.
        let _ = self.inner.stopping.clone().wait_for(|&stopping| stopping).await;
    }

    /// Sends commands whose answers interest nobody.
    pub(crate) fn submit_unread(&self, commands: Vec<Command>) {
        custody::give_back(self, commands);
    }

    /// The backend itself.
    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.inner.backend
    }
}

/// A backend that answers less than it was asked breaks its promise; nobody may hang or panic.
pub(crate) fn no_reply() -> Error {
    Error::unavailable("the backend gave no answer; ask again")
}

/// The reply was of another kind than the command asks for.
pub(crate) fn unexpected(reply: &Reply) -> Error {
    Error::unavailable(format!("the backend answered with something else: {reply:?}"))
}
