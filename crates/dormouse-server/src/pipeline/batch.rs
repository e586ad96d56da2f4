//! A batch: commands that go to the backend together, with the continuations of their replies.

use std::mem;
use std::sync::Arc;

use dormouse_core::backend;
use dormouse_core::command::Command;
use dormouse_core::error::Error;

use super::turn::{Pending, Request};
use crate::client::{BackendClient, BatchReplies, PendingBatch, no_reply, unnumbered};
use crate::holder::Holder;
use crate::visitor::Visitor;

/// Requests that are gathered, then sent together.
pub(super) struct Batch<T> {
    /// Moved to `sent` when the batch is sent.
    commands: Vec<backend::Request>,
    /// `None` if there was no command to send.
    sent: Option<Result<PendingBatch, Error>>,
    pub(super) pending: Vec<Pending<T>>,
    has_puts: bool,
}

/// Empty lists that a connection uses again for its next turn.
pub(super) struct SpareLists<T> {
    requests: Vec<Request<T>>,
    pending: Vec<Pending<T>>,
    /// The requests of the last turn: the next one most likely has as many.
    expected: usize,
}

/// Lists with room for more items than this are not kept: a silent connection should hold little.
const SPARE_ITEMS_MAX: usize = 4;
/// A turn is not expected to have more requests than this.
const EXPECTED_MAX: usize = 64;

impl<T> SpareLists<T> {
    pub(super) fn new() -> SpareLists<T> {
        SpareLists { requests: Vec::new(), pending: Vec::new(), expected: 0 }
    }

    /// A list for the requests of a turn.
    pub(super) fn requests(&mut self) -> Vec<Request<T>> {
        let mut requests = mem::take(&mut self.requests);
        // Growing step by step would move the requests each time.
        if self.expected > SPARE_ITEMS_MAX {
            requests.reserve_exact(self.expected);
        }
        requests
    }

    /// A turn has so many requests.
    pub(super) fn note_requests(&mut self, count: usize) {
        self.expected = count.min(EXPECTED_MAX);
    }

    pub(super) fn keep_requests(&mut self, requests: Vec<Request<T>>) {
        if requests.is_empty() && (1..=SPARE_ITEMS_MAX).contains(&requests.capacity()) {
            self.requests = requests;
        }
    }

    pub(super) fn keep_pending(&mut self, pending: Vec<Pending<T>>) {
        if pending.is_empty() && (1..=SPARE_ITEMS_MAX).contains(&pending.capacity()) {
            self.pending = pending;
        }
    }
}

impl<T> Default for Batch<T> {
    fn default() -> Batch<T> {
        Batch { commands: Vec::new(), sent: None, pending: Vec::new(), has_puts: false }
    }
}

impl<T> Batch<T> {
    /// With room for so many requests.
    pub(super) fn expecting(requests: usize) -> Batch<T> {
        let mut batch = Batch::default();
        if requests > SPARE_ITEMS_MAX {
            batch.commands.reserve_exact(requests.min(EXPECTED_MAX));
            batch.pending.reserve_exact(requests.min(EXPECTED_MAX));
        }
        batch
    }

    pub(super) fn of(request: Request<T>, spare: &mut SpareLists<T>) -> Batch<T> {
        let mut batch = Batch::default();
        batch.push(request, spare);
        batch
    }

    /// Adds a request; the first one takes the spare list.
    pub(super) fn push(&mut self, request: Request<T>, spare: &mut SpareLists<T>) {
        if self.pending.capacity() == 0 {
            self.pending = mem::take(&mut spare.pending);
        }
        self.has_puts |= matches!(request.command, Some(Command::Put(_) | Command::Chain(_)));
        self.commands.extend(request.command.map(unnumbered));
        self.pending.push(request.pending);
    }

    pub(super) fn has_puts(&self) -> bool {
        self.has_puts
    }

    /// Leases and locks that it takes count for this holder; this visitor waits for it.
    pub(super) fn send(
        &mut self,
        client: &BackendClient,
        holder: Option<&Holder>,
        visitor: &Arc<Visitor>,
    ) {
        let commands = mem::take(&mut self.commands);
        self.sent =
            (!commands.is_empty()).then(|| client.submit_of(Some(visitor), commands, holder));
    }

    /// The batch under way, or its replies if there is nothing to wait for.
    pub(super) fn take_sent(
        &mut self,
        client: &BackendClient,
    ) -> Result<PendingBatch, BatchReplies> {
        match self.sent.take() {
            Some(Ok(sent)) => Ok(sent),
            Some(Err(error)) => {
                let is_command = |pending: &&Pending<T>| !matches!(pending, Pending::Bytes(_));
                let commands = self.pending.iter().filter(is_command).count();
                Err(BatchReplies::refused(client, &error, commands))
            }
            None => Err(BatchReplies::refused(client, &no_reply(), 0)),
        }
    }
}
