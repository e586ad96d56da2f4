//! A batch: commands that go to the backend together, with the continuations of their replies.

use std::mem;

use dormouse_core::command::Command;
use dormouse_core::error::Error;

use super::turn::{Pending, Request};
use crate::client::{BackendClient, BatchReply, PendingBatch};

/// Requests that are gathered, then sent together.
pub(super) struct Batch<T> {
    /// Moved to `sent` when the batch is sent.
    commands: Vec<Command>,
    /// `None` if there was no command to send.
    sent: Option<Result<PendingBatch, Error>>,
    pub(super) pending: Vec<Pending<T>>,
}

impl<T> Batch<T> {
    pub(super) fn new() -> Batch<T> {
        Batch { commands: Vec::new(), sent: None, pending: Vec::new() }
    }

    pub(super) fn of(request: Request<T>) -> Batch<T> {
        let mut batch = Batch::new();
        batch.push(request);
        batch
    }

    pub(super) fn push(&mut self, request: Request<T>) {
        self.commands.extend(request.command);
        self.pending.push(request.pending);
    }

    pub(super) fn has_puts(&self) -> bool {
        self.commands.iter().any(|command| matches!(command, Command::Put(_)))
    }

    pub(super) fn send(&mut self, client: &BackendClient) {
        let commands = mem::take(&mut self.commands);
        self.sent = (!commands.is_empty()).then(|| client.submit(commands));
    }

    /// The batch under way, or its replies if there is nothing to wait for.
    pub(super) fn take_sent(&mut self) -> Result<PendingBatch, Vec<BatchReply>> {
        match self.sent.take() {
            Some(Ok(sent)) => Ok(sent),
            Some(Err(error)) => {
                let is_command = |pending: &&Pending<T>| !matches!(pending, Pending::Bytes(_));
                let commands = self.pending.iter().filter(is_command);
                Err(commands.map(|_| BatchReply::refused(&error)).collect())
            }
            None => Err(Vec::new()),
        }
    }
}
