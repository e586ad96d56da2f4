//! What RESP and beanstalkd, the protocols of pipelined commands, share.
//!
//! ```text
//!   socket -> input -> Protocol::read -> turn (requests) -> batch -> client -> Backend
//!   socket <- output <- Protocol::on_reply <- reply <-------------- client <- Backend
//! ```
//! A command passes through three types: a `Request` holds what the protocol has parsed, with the
//! continuation that will receive the reply; a `Batch` is on its way to the backend; a
//! `RequestReply` goes back to the protocol. `driver.rs` explains how connections proceed.

mod batch;
mod driver;
mod guest;
mod input;
mod listen;
mod output;
mod reply;
mod thread;
mod turn;

use std::time::Duration;

use bytes::BytesMut;
use dormouse_core::command::Command;
use dormouse_core::error::Error;

use crate::access::Grant;
pub(crate) use listen::{PipelineContext, PipelineServer};
pub(crate) use reply::RequestReply;
pub(crate) use thread::PipelineThread;
pub(crate) use turn::{Request, Turn};

/// One protocol's side of one connection. It knows the protocol's bytes and the state of the
/// connection, and neither a socket nor the backend.
pub(crate) trait Protocol: Send + 'static {
    /// What the protocol remembers of a request until its reply arrives.
    type PendingReply: Send;

    /// Takes complete commands off the input and adds them to the turn, while `turn.has_room()`.
    fn read(&mut self, input: &mut BytesMut, turn: &mut Turn<Self::PendingReply>) -> Flow;

    /// Writes the reply to a request; called in the order of the requests. A reply may lead to
    /// another request, which is sent before anything else: only a request that was added with
    /// `Turn::send_last` may do that.
    fn on_reply(
        &mut self,
        pending: Self::PendingReply,
        reply: Result<RequestReply, Error>,
        out: &mut BytesMut,
    ) -> Next<Self::PendingReply>;

    /// The caller's rights, by which `Request::check` is decided.
    fn grant(&self) -> &Grant;

    /// Whether the caller needs a token and has presented none.
    fn is_guest(&self) -> bool;

    /// Whether the rights are the caller's still by which its last commands were let in.
    fn standing(&self) -> Standing;

    /// How long the replies of the turn that was read last have to wait.
    fn take_delay(&mut self) -> Option<Duration>;

    /// Writes why the server closes the connection, if the protocol has a message for it.
    fn on_close(&mut self, why: CloseReason, out: &mut BytesMut);

    /// The commands that remain to be done once the connection has ended, for whatever reason.
    fn end(&mut self) -> Vec<Command>;
}

/// The request that a reply leads to; `None` if the reply was the last step.
pub(crate) type Next<T> = Option<Request<T>>;

/// How to proceed after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Answer the turn, then read on: at once if the turn is full, else when more input arrives.
    Continue,
    /// Answer the turn, then close.
    Close,
}

/// Why the server closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// All connections together hold too many bytes of incomplete commands.
    Crowded,
    /// The rest of a command did not arrive in time.
    Slow,
    /// The caller needs a token and did not present one in time.
    Guest,
    /// The caller's token is gone, or its rights have changed while a command waited.
    Revoked,
}

/// What has become of a caller's rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// They are the same.
    Same,
    /// They have changed.
    Changed,
    /// The token is gone.
    Gone,
}

/// The commands of an input that arrives in pieces, one for each put and each ack: how many of them
/// become one command depends on the pieces.
#[cfg(test)]
pub(crate) fn read_all<'p, P: Protocol>(
    protocol: &mut P,
    pieces: impl Iterator<Item = &'p [u8]>,
    mut input: BytesMut,
) -> Vec<Command> {
    let mut commands = Vec::new();
    for piece in pieces {
        input.extend_from_slice(piece);
        for round in 0.. {
            assert!(round <= input.len() + piece.len() + 1, "it makes no progress");
            let mut turn = Turn::new();
            let flow = protocol.read(&mut input, &mut turn);
            protocol.take_delay();
            let is_full = !turn.has_room();
            for request in turn.into_requests() {
                match request.command {
                    Some(Command::Put(puts)) => {
                        commands.extend(puts.into_iter().map(|put| Command::Put(vec![put])));
                    }
                    Some(Command::Ack(acks)) => {
                        commands.extend(acks.into_iter().map(|ack| Command::Ack(vec![ack])));
                    }
                    command => commands.extend(command),
                }
            }
            if flow == Flow::Close {
                return commands;
            }
            if !is_full {
                break;
            }
        }
    }
    commands
}
