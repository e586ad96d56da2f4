//! What the protocols of pipelined commands share: RESP and beanstalkd.
//!
//! ```text
//!   socket -> input -> Protocol::read -> turn (commands) -> client -> Protocol::write -> socket
//! ```
//! A connection goes in turns: all whole commands that have come are read, go to the backend as one
//! batch and are answered in order; then the next turn begins. So a pipeline is a batch, and what
//! one connection can hold is bounded. A command that may wait is the last of its turn: answers
//! before it leave first, commands behind it are read when it is answered.

mod answers;
mod drive;
mod group;
mod input;
mod listen;
mod output;
mod turn;

use bytes::BytesMut;
use dormouse_core::command::Command;

use crate::access::Grant;
pub(crate) use listen::{PipelineContext, PipelineServer};
pub(crate) use turn::{Outcome, Step, Turn};

/// One protocol's side of one connection: knows its bytes and what the connection has set up, and
/// neither a socket nor the backend.
pub(crate) trait Protocol: Send + 'static {
    /// What a protocol remembers of a command until its outcome is there.
    type PendingReply: Send;

    /// Takes whole commands off the input and adds them to the turn, while `turn.has_room()`.
    fn read(&mut self, input: &mut BytesMut, turn: &mut Turn<Self::PendingReply>) -> Flow;

    /// Writes what came of a command; called in the order of the commands. What this gives is done
    /// next, before anything else: only for commands that `Turn::ask_last` has added.
    fn write(
        &mut self,
        then: Self::PendingReply,
        outcome: Outcome,
        out: &mut BytesMut,
    ) -> Option<Step<Self::PendingReply>>;

    /// What the caller may do; `Step::check` is judged by it.
    fn grant(&self) -> &Grant;

    /// Tells the client why the connection ends, if the protocol has words for it.
    fn on_close(&mut self, why: CloseReason, out: &mut BytesMut);

    /// What is left to do when the connection has ended, however it did.
    fn end(&mut self) -> Vec<Command>;
}

/// What to do after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Answer the turn, and read on: here if it is full, or when more has come.
    Go,
    /// Answer the turn, then close.
    Close,
}

/// Why the server ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// All connections together hold too many bytes of unfinished commands.
    Crowded,
    /// The rest of a command did not come.
    Slow,
}
