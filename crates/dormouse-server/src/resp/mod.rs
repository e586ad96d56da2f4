//! RESP, the protocol of Redis clients; docs/resp.md specifies it.
//!
//! ```text
//!   input -> decode -> args -> spec (which command) -> verb/<verb>.rs -> turn -> backend
//!                                                  \-> connection/<name>.rs -> answered at once
//!   output <- encode <- verb/<verb>.rs <- reply
//! ```

mod args;
mod conn;
mod connection;
mod decode;
mod encode;
mod fault;
#[cfg(test)]
mod fuzz;
mod inline;
mod spec;
mod verb;

use std::sync::Arc;
use std::time::Duration;

use crate::limits::RESP_COMMAND_BYTES_MAX;
use bytes::{Buf, BytesMut};
use dormouse_core::command::Command;
use dormouse_core::error::{Code, Error};

use crate::acceptor::Acceptor;
use crate::access::{Access, Grant};
use crate::metrics::{Metrics, ProtocolKind};
use crate::pipeline::{
    CloseReason, Flow, Next, PipelineContext, PipelineServer, Protocol, RequestReply, Standing,
    Turn,
};
use crate::visitor::Visitor;
use args::Args;
use conn::Conn;
pub(crate) use conn::PendingReply;
use decode::{Decoder, Frame, ProtocolError};
use encode::Out;
pub(crate) use spec::NAMES;

/// The server of this protocol.
pub(crate) fn server(
    acceptor: Acceptor,
    context: PipelineContext,
    access: Access,
) -> PipelineServer<impl Fn(&Arc<Visitor>) -> Resp + Send> {
    let metrics = Arc::clone(&context.metrics);
    let begin = move |visitor: &Arc<Visitor>| {
        Resp::new(access.clone(), Arc::clone(&metrics), Arc::clone(visitor))
    };
    PipelineServer { acceptor, context, kind: ProtocolKind::Resp, crowded: CROWDED, begin }
}

/// The error for a connection above the limit.
const CROWDED: &[u8] = b"-ERR max number of clients reached\r\n";

/// One connection.
pub(crate) struct Resp {
    decoder: Decoder,
    conn: Conn,
}

impl Resp {
    fn new(access: Access, metrics: Arc<Metrics>, visitor: Arc<Visitor>) -> Resp {
        Resp { decoder: Decoder::default(), conn: Conn::new(access, metrics, visitor) }
    }

    /// Runs a complete command, and takes it off the input.
    fn command(&mut self, found: Frame, input: &mut BytesMut, turn: &mut Turn<PendingReply>) {
        let Resp { decoder, conn } = self;
        let ranges = &decoder.ranges;
        match found {
            Frame::List(end) if Args::are_large(ranges) => {
                let frame = input.split_to(end).freeze();
                conn.command(Args::new(&frame, ranges, Some(&frame)), turn);
            }
            Frame::List(end) => {
                conn.command(Args::new(input.get(..end).unwrap_or_default(), ranges, None), turn);
                input.advance(end);
            }
            Frame::Line(end) => {
                conn.command(Args::new(&decoder.words, ranges, None), turn);
                input.advance(end);
            }
            Frame::TooLarge => conn.refuse_unread(&too_large(), turn),
        }
        decoder.clear();
    }
}

impl Protocol for Resp {
    type PendingReply = PendingReply;

    fn read(&mut self, input: &mut BytesMut, turn: &mut Turn<PendingReply>) -> Flow {
        self.conn.begin_turn();
        while turn.has_room() {
            match self.decoder.next(input, self.conn.bounds()) {
                Ok(None) => break,
                Ok(Some(found)) => self.command(found, input, turn),
                Err(error) => {
                    write_protocol_error(&error, turn.reply_now());
                    return Flow::Close;
                }
            }
            if self.conn.is_over {
                return Flow::Close;
            }
            // Requests before this one are checked by the old grant, those behind it by the new
            // one. A caller who guesses waits for each answer.
            if self.conn.is_new_caller || self.conn.delay.is_some() {
                turn.end();
            }
        }
        Flow::Continue
    }

    fn on_reply(
        &mut self,
        pending: PendingReply,
        reply: Result<RequestReply, Error>,
        out: &mut BytesMut,
    ) -> Next<PendingReply> {
        verb::on_reply(&mut self.conn, pending, reply, out)
    }

    fn grant(&self) -> &Grant {
        self.conn.grant_before()
    }

    fn is_guest(&self) -> bool {
        !self.conn.is_known()
    }

    fn standing(&self) -> Standing {
        self.conn.standing()
    }

    fn take_delay(&mut self) -> Option<Duration> {
        self.conn.delay.take()
    }

    fn on_close(&mut self, why: CloseReason, out: &mut BytesMut) {
        let (code, text) = match why {
            CloseReason::Crowded => {
                let text = "all connections together, or those of this token or address, hold too \
                            many bytes of unfinished commands; connect and try again";
                (Code::Busy, text)
            }
            CloseReason::Slow => (Code::Invalid, "the rest of the command did not come in time"),
            CloseReason::Revoked => {
                let text = "the access token was withdrawn, or its rights have changed; connect \
                            again";
                (Code::Unauthorized, text)
            }
            CloseReason::Guest => {
                (Code::Unauthorized, "no access token came in time; connect and send AUTH at once")
            }
        };
        fault::write(&mut Out::new(out, self.conn.version), &Error::new(code, text));
    }

    fn end(&mut self) -> Vec<Command> {
        Vec::new()
    }
}

fn write_protocol_error(error: &ProtocolError, out: &mut BytesMut) {
    let text = match error {
        ProtocolError::Malformed(text) => format!("Protocol error: {text}"),
        ProtocolError::Http => "Protocol error: this is HTTP, and this port speaks RESP".to_owned(),
    };
    Out::new(out, encode::Version::Two).error(fault::ERR, &text);
}

fn too_large() -> Error {
    let text = format!(
        "the command has more than {RESP_COMMAND_BYTES_MAX} bytes; send less at once, and keep \
         large bodies elsewhere"
    );
    Error::new(Code::TooLarge, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::visitor::Address;

    fn connect() -> Resp {
        let visitor = Visitor::new(Address::Local, ProtocolKind::Resp, None);
        Resp::new(Access::open(), Arc::default(), Arc::new(visitor))
    }

    /// The input that a turn leaves.
    fn left_of(input: &str) -> String {
        let mut resp = connect();
        let mut input = BytesMut::from(input);
        resp.read(&mut input, &mut Turn::new());
        String::from_utf8(input.to_vec()).unwrap()
    }

    #[test]
    fn the_reason_for_closing_is_written() {
        for (why, word) in [
            (CloseReason::Crowded, "-OVERLOADED all connections together, or those of this token "),
            (CloseReason::Slow, "-INVALID the rest of the command did not come in time\r\n"),
            (CloseReason::Revoked, "-NOAUTH the access token was withdrawn"),
            (CloseReason::Guest, "-NOAUTH no access token came in time"),
        ] {
            let mut said = BytesMut::new();
            connect().on_close(why, &mut said);
            let said = String::from_utf8(said.to_vec()).unwrap();
            assert!(said.starts_with(word) && said.ends_with("\r\n"), "{said}");
        }
    }

    /// A packet full of them would be one batch, and the engine does nothing else meanwhile.
    #[test]
    fn an_expensive_command_ends_its_turn() {
        for line in ["STATS", "STATS t", "FORECAST t", "TOPICS", "LIST t ready", "PEEK t"] {
            assert_eq!(left_of(&format!("PING\r\n{line}\r\nPING\r\n")), "PING\r\n", "{line}");
        }
        assert_eq!(left_of("PUT t x\r\nGET 1\r\nPING\r\n"), "");
    }
}
