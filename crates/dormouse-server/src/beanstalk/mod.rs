//! The beanstalkd protocol.
//!
//! ```text
//!   input -> line -> parse -> verb/<name> -> turn ... reply -> verb/<name> -> output
//! ```
//! Its terms are translated here and nowhere else: a tube is a topic, reserved is leased, buried is
//! dead, a delete is an ack or a cancel. Reservations belong to the connection: they are leases of
//! a session, which the connection's first reserve opens and its end closes.

mod clock;
mod counts;
#[cfg(test)]
mod fuzz;
mod host;
mod line;
mod listen;
mod number;
mod parse;
mod recent;
mod reply;
mod reservations;
mod shared;
mod tubes;
mod verb;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use dormouse_core::command::Command;
use dormouse_core::error::Error;
use dormouse_core::op::SessionId;
use dormouse_core::topic::TopicName;

use crate::access::Grant;
use crate::pipeline::{CloseReason, Flow, Next, Protocol, RequestReply, Standing, Turn};
use line::Line;
pub(crate) use listen::start;
pub use listen::{BeanstalkAddr, BeanstalkOptions};
use parse::{ParseError, PutLine};
use recent::RecentJobs;
use reservations::Reservations;
pub use shared::Drain;
pub(crate) use shared::Shared;
use shared::{down, up};
use tubes::{Attachment, DEFAULT, Tube};
use verb::PendingReply;

/// One connection.
pub(crate) struct Beanstalk {
    shared: Arc<Shared>,
    used: Arc<Tube>,
    /// In the order of `list-tubes-watched`.
    watched: Vec<Arc<Tube>>,
    session: Option<SessionId>,
    reservations: Reservations,
    next: Expected,
    is_producer: bool,
    is_worker: bool,
    is_waiting: bool,
    recent: RecentJobs,
}

/// The next element of the input.
enum Expected {
    Line,
    /// The rest of a line that is too long.
    Rest,
    /// The body of a put.
    Body(PutLine),
    /// The rest of a body that is too large, in bytes.
    Large(u64),
}

impl Beanstalk {
    pub(crate) fn new(shared: Arc<Shared>) -> Beanstalk {
        let tube = |attachment| {
            let name = TopicName::new(DEFAULT).expect("a good name");
            shared.tubes.attach(name, attachment).expect("the default tube always exists")
        };
        let (used, watched) = (tube(Attachment::Uses), vec![tube(Attachment::Watches)]);
        up(&shared.connections.connections);
        up(&shared.connections.connections_ever);
        Beanstalk {
            shared,
            used,
            watched,
            session: None,
            reservations: Reservations::default(),
            next: Expected::Line,
            is_producer: false,
            is_worker: false,
            is_waiting: false,
            recent: RecentJobs::default(),
        }
    }

    /// Takes the first line off the input; false if it is incomplete.
    fn read_line(
        &mut self,
        input: &mut BytesMut,
        turn: &mut Turn<PendingReply>,
    ) -> Result<bool, Close> {
        match line::find(input) {
            Line::Begun => Ok(false),
            Line::Long => {
                refuse_http(input)?;
                self.next = Expected::Rest;
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
                    Err(ParseError::Format) => {
                        turn.reply_now().extend_from_slice(reply::BAD_FORMAT);
                    }
                    Err(ParseError::Unknown) => {
                        turn.reply_now().extend_from_slice(reply::UNKNOWN_COMMAND);
                    }
                }
                Ok(true)
            }
        }
    }

    /// Reads the next element of the input; false if it is incomplete.
    fn step(&mut self, input: &mut BytesMut, turn: &mut Turn<PendingReply>) -> Result<bool, Close> {
        match self.next {
            Expected::Line => self.read_line(input, turn),
            Expected::Rest => {
                let is_over = line::skim(input);
                if is_over {
                    self.next = Expected::Line;
                    turn.reply_now().extend_from_slice(reply::BAD_FORMAT);
                }
                Ok(is_over)
            }
            Expected::Body(line) => Ok(self.read_body(line, input, turn)),
            Expected::Large(left) => Ok(self.swallow(left, input, turn)),
        }
    }
}

/// The connection is to be closed.
struct Close;

fn refuse_http(line: &[u8]) -> Result<(), Close> {
    if line::is_http(line) { Err(Close) } else { Ok(()) }
}

impl Protocol for Beanstalk {
    type PendingReply = PendingReply;

    fn read(&mut self, input: &mut BytesMut, turn: &mut Turn<PendingReply>) -> Flow {
        while turn.has_room() {
            match self.step(input, turn) {
                Ok(true) => {}
                Ok(false) => return Flow::Continue,
                Err(Close) => return Flow::Close,
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
        self.handle_reply(pending, reply, out)
    }

    fn grant(&self) -> &Grant {
        &self.shared.grant
    }

    /// This protocol has no tokens.
    fn is_guest(&self) -> bool {
        false
    }

    fn standing(&self) -> Standing {
        Standing::Same
    }

    fn take_delay(&mut self) -> Option<Duration> {
        None
    }

    fn on_close(&mut self, why: CloseReason, out: &mut BytesMut) {
        if why == CloseReason::Crowded {
            out.extend_from_slice(reply::OUT_OF_MEMORY);
        }
    }

    fn end(&mut self) -> Vec<Command> {
        self.session.take().map(Command::CloseSession).into_iter().collect()
    }
}

impl Drop for Beanstalk {
    fn drop(&mut self) {
        let Beanstalk { shared, used, watched, is_producer, is_worker, is_waiting, .. } = self;
        shared.tubes.detach(used, Attachment::Uses);
        watched.iter().for_each(|tube| shared.tubes.detach(tube, Attachment::Watches));
        let connections = &shared.connections;
        let counts = [
            (true, &connections.connections),
            (*is_producer, &connections.producers),
            (*is_worker, &connections.workers),
            (*is_waiting, &connections.waiting),
        ];
        counts.into_iter().filter(|(is, _)| *is).for_each(|(_, count)| down(count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The protocol has a message for one of them only.
    #[test]
    fn the_reason_for_closing_is_written_if_there_is_a_message() {
        for (why, word) in [(CloseReason::Crowded, reply::OUT_OF_MEMORY), (CloseReason::Slow, b"")]
        {
            let shared =
                Arc::new(Shared::new(100, Drain::default(), &crate::access::Access::open()));
            let mut said = BytesMut::new();
            Beanstalk::new(shared).on_close(why, &mut said);
            assert_eq!(said, word, "{why:?}");
        }
    }
}
