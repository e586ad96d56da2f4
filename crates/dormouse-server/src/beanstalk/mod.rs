//! The beanstalkd protocol: a connection of a client of it.
//!
//! ```text
//!   input -> line -> parse -> verb/<name> -> turn ... outcome -> verb/<name> -> output
//! ```
//! Words translate here and nowhere else: a tube is a topic, reserved is leased, buried is dead, a
//! delete is an ack or a cancel. Reservations belong to the connection: they are leases of a
//! session, which its first reserve opens and its end closes.

mod clock;
mod holds;
mod host;
mod house;
mod line;
mod listen;
mod number;
mod parse;
mod recent;
mod tally;
mod tubes;
mod verb;
mod words;

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use dormouse_core::command::Command;
use dormouse_core::op::SessionId;
use dormouse_core::topic::TopicName;

use crate::access::{Access, Grant};
use crate::pipeline::{Farewell, Flow, Outcome, Protocol, Step, Turn};
use holds::Holds;
pub use house::Drain;
pub(crate) use house::House;
use house::{down, up};
use line::Line;
pub(crate) use listen::start;
pub use listen::{BeanstalkAddr, BeanstalkOptions};
use parse::{PutLine, Wrong};
use recent::Recent;
use tubes::{DEFAULT, Tie, Tube};
use verb::Then;

/// One connection.
pub(crate) struct Beanstalk {
    house: Arc<House>,
    grant: Grant,
    used: Arc<Tube>,
    /// In the order in which `list-tubes-watched` tells them.
    watched: Vec<Arc<Tube>>,
    session: Option<SessionId>,
    holds: Holds,
    next: Next,
    is_producer: bool,
    is_worker: bool,
    is_waiting: bool,
    recent: Recent,
}

/// What the input goes on with.
enum Next {
    Line,
    /// The rest of a line that is too long.
    Rest,
    /// The body of a put.
    Body(PutLine),
    /// So many bytes of a body that is too large.
    Large(u64),
}

impl Beanstalk {
    /// A client has come.
    pub(crate) fn new(house: Arc<House>) -> Beanstalk {
        let tube = |tie| {
            let name = TopicName::new(DEFAULT).expect("a good name");
            house.tubes.tie(name, tie).expect("it is always there")
        };
        let (used, watched) = (tube(Tie::Uses), vec![tube(Tie::Watches)]);
        up(&house.crowd.connections);
        up(&house.crowd.connections_ever);
        Beanstalk {
            house,
            grant: everything(),
            used,
            watched,
            session: None,
            holds: Holds::default(),
            next: Next::Line,
            is_producer: false,
            is_worker: false,
            is_waiting: false,
            recent: Recent::default(),
        }
    }

    /// Takes the first line off the input; false = it has not come yet.
    fn read_line(&mut self, input: &mut BytesMut, turn: &mut Turn<Then>) -> Result<bool, Bye> {
        match line::find(input) {
            Line::Begun => Ok(false),
            Line::Long => {
                refuse_http(input)?;
                self.next = Next::Rest;
                Ok(true)
            }
            Line::Whole(length) => {
                let parsed = parse::parse(&input[..length]);
                if parsed.is_err() {
                    refuse_http(&input[..length])?;
                }
                input.advance(length + line::END.len());
                match parsed {
                    Ok(ask) => self.ask(ask, turn)?,
                    Err(Wrong::Format) => turn.say().extend_from_slice(words::BAD_FORMAT),
                    Err(Wrong::Unknown) => turn.say().extend_from_slice(words::UNKNOWN_COMMAND),
                }
                Ok(true)
            }
        }
    }

    /// Does what it can with the input; false = the rest has not come yet.
    fn step(&mut self, input: &mut BytesMut, turn: &mut Turn<Then>) -> Result<bool, Bye> {
        match self.next {
            Next::Line => self.read_line(input, turn),
            Next::Rest => {
                let is_over = line::skim(input);
                if is_over {
                    self.next = Next::Line;
                    turn.say().extend_from_slice(words::BAD_FORMAT);
                }
                Ok(is_over)
            }
            Next::Body(line) => Ok(self.read_body(line, input, turn)),
            Next::Large(left) => Ok(self.swallow(left, input, turn)),
        }
    }
}

/// The connection is to be closed.
struct Bye;

fn refuse_http(line: &[u8]) -> Result<(), Bye> {
    if line::is_http(line) { Err(Bye) } else { Ok(()) }
}

/// This protocol knows no tokens; who may connect is up to the address that it listens on.
fn everything() -> Grant {
    Access::open().grant(None).expect("an open door")
}

impl Protocol for Beanstalk {
    type Then = Then;

    fn read(&mut self, input: &mut BytesMut, turn: &mut Turn<Then>) -> Flow {
        while turn.has_room() {
            match self.step(input, turn) {
                Ok(true) => {}
                Ok(false) => return Flow::Go,
                Err(Bye) => return Flow::Close,
            }
        }
        Flow::Go
    }

    fn write(&mut self, then: Then, outcome: Outcome, out: &mut BytesMut) -> Option<Step<Then>> {
        self.tell(then, outcome, out)
    }

    fn grant(&self) -> &Grant {
        &self.grant
    }

    fn farewell(&mut self, why: Farewell, out: &mut BytesMut) {
        if why == Farewell::Crowded {
            out.extend_from_slice(words::OUT_OF_MEMORY);
        }
    }

    fn end(&mut self) -> Vec<Command> {
        self.session.take().map(Command::CloseSession).into_iter().collect()
    }
}

impl Drop for Beanstalk {
    fn drop(&mut self) {
        let Beanstalk { house, used, watched, is_producer, is_worker, is_waiting, .. } = self;
        house.tubes.untie(used, Tie::Uses);
        watched.iter().for_each(|tube| house.tubes.untie(tube, Tie::Watches));
        let crowd = &house.crowd;
        let counts = [
            (true, &crowd.connections),
            (*is_producer, &crowd.producers),
            (*is_worker, &crowd.workers),
            (*is_waiting, &crowd.waiting),
        ];
        counts.into_iter().filter(|(is, _)| *is).for_each(|(_, count)| down(count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The protocol has words for one of them only.
    #[test]
    fn who_is_sent_away_is_told_why() {
        for (why, word) in [(Farewell::Crowded, words::OUT_OF_MEMORY), (Farewell::Slow, b"")] {
            let house = Arc::new(House::new(100, Drain::default()));
            let mut said = BytesMut::new();
            Beanstalk::new(house).farewell(why, &mut said);
            assert_eq!(said, word, "{why:?}");
        }
    }
}
