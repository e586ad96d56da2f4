//! RESP, the protocol of Redis' clients: docs/resp.md is its contract.
//!
//! ```text
//!   input -> decode -> args -> word (which command) -> verb/<verb>.rs -> turn -> backend
//!                                                   \-> talk/<word>.rs -> answered at once
//!   output <- encode <- verb/<verb>.rs <- outcome
//! ```

mod args;
mod conn;
mod decode;
mod encode;
mod fault;
mod inline;
mod talk;
mod verb;
mod word;

use std::sync::Arc;

use crate::limits::RESP_COMMAND_BYTES_MAX;
use bytes::{Buf, BytesMut};
use dormouse_core::command::Command;
use dormouse_core::error::{Code, Error};

use crate::access::{Access, Grant};
use crate::gate::Gate;
use crate::metrics::{Metrics, Spoken};
use crate::pipeline::{Farewell, Flow, Outcome, Pipelines, Protocol, Shared, Step, Turn};
use args::Args;
use conn::Conn;
pub(crate) use conn::Then;
use decode::{Breach, Decoder, Found};
use encode::Out;
pub(crate) use word::NAMES;

/// What serves RESP to all who come.
pub(crate) fn pipelines(
    gate: Gate,
    shared: Shared,
    access: Access,
) -> Pipelines<impl Fn() -> Resp + Send> {
    let metrics = Arc::clone(&shared.metrics);
    let begin = move || Resp::new(access.clone(), Arc::clone(&metrics));
    Pipelines { gate, shared, spoken: Spoken::Resp, crowded: CROWDED, begin }
}

/// What a client hears when there is no room for it.
const CROWDED: &[u8] = b"-ERR max number of clients reached\r\n";

/// One connection.
pub(crate) struct Resp {
    decoder: Decoder,
    conn: Conn,
}

impl Resp {
    /// A connection of somebody who has said nothing yet.
    fn new(access: Access, metrics: Arc<Metrics>) -> Resp {
        Resp { decoder: Decoder::default(), conn: Conn::new(access, metrics) }
    }

    /// Does a command that is all there, and takes it off the input.
    fn command(&mut self, found: Found, input: &mut BytesMut, turn: &mut Turn<Then>) {
        let Resp { decoder, conn } = self;
        let places = &decoder.places;
        match found {
            Found::List(end) if Args::are_large(places) => {
                let frame = input.split_to(end).freeze();
                conn.command(Args::new(&frame, places, Some(&frame)), turn);
            }
            Found::List(end) => {
                conn.command(Args::new(input.get(..end).unwrap_or_default(), places, None), turn);
                input.advance(end);
            }
            Found::Line(end) => {
                conn.command(Args::new(&decoder.words, places, None), turn);
                input.advance(end);
            }
            Found::TooLarge => conn.refuse_unread(&too_large(), turn),
        }
        decoder.clear();
    }
}

impl Protocol for Resp {
    type Then = Then;

    fn read(&mut self, input: &mut BytesMut, turn: &mut Turn<Then>) -> Flow {
        self.conn.begin_turn();
        while turn.has_room() {
            match self.decoder.next(input, self.conn.bounds()) {
                Ok(None) => break,
                Ok(Some(found)) => self.command(found, input, turn),
                Err(breach) => {
                    say_breach(&breach, turn.say());
                    return Flow::Close;
                }
            }
            if self.conn.is_over {
                return Flow::Close;
            }
            // What came before is judged by the old grant, what comes behind by the new one.
            if self.conn.is_new_caller {
                turn.end();
            }
        }
        Flow::Go
    }

    fn write(&mut self, then: Then, outcome: Outcome, out: &mut BytesMut) -> Option<Step<Then>> {
        verb::write(&mut self.conn, then, outcome, out)
    }

    fn grant(&self) -> &Grant {
        self.conn.grant_before()
    }

    fn farewell(&mut self, why: Farewell, out: &mut BytesMut) {
        let (code, text) = match why {
            Farewell::Crowded => {
                let text = "all connections together hold too many bytes of unfinished commands; \
                            connect and try again";
                (Code::Busy, text)
            }
            Farewell::Slow => (Code::Invalid, "the rest of the command did not come in time"),
        };
        fault::write(&mut Out::new(out, self.conn.version), &Error::new(code, text));
    }

    fn end(&mut self) -> Vec<Command> {
        Vec::new()
    }
}

fn say_breach(breach: &Breach, out: &mut BytesMut) {
    let text = match breach {
        Breach::Malformed(text) => format!("Protocol error: {text}"),
        Breach::Http => "Protocol error: this is HTTP, and RESP is spoken here".to_owned(),
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

    /// What a turn leaves of this input.
    fn left_of(input: &str) -> String {
        let mut resp = Resp::new(Access::open(), Arc::default());
        let mut input = BytesMut::from(input);
        resp.read(&mut input, &mut Turn::new());
        String::from_utf8(input.to_vec()).unwrap()
    }

    #[test]
    fn who_is_sent_away_is_told_why() {
        for (why, word) in [
            (Farewell::Crowded, "-OVERLOADED all connections together hold too many bytes "),
            (Farewell::Slow, "-INVALID the rest of the command did not come in time\r\n"),
        ] {
            let mut said = BytesMut::new();
            Resp::new(Access::open(), Arc::default()).farewell(why, &mut said);
            let said = String::from_utf8(said.to_vec()).unwrap();
            assert!(said.starts_with(word) && said.ends_with("\r\n"), "{said}");
        }
    }

    /// A packet full of them would be one submission, and the engine does nothing else meanwhile.
    #[test]
    fn what_costs_the_engine_much_ends_its_turn() {
        for line in ["STATS", "STATS t", "FORECAST t", "TOPICS", "LIST t ready", "PEEK t"] {
            assert_eq!(left_of(&format!("PING\r\n{line}\r\nPING\r\n")), "PING\r\n", "{line}");
        }
        assert_eq!(left_of("PUT t x\r\nGET 1\r\nPING\r\n"), "");
    }
}
