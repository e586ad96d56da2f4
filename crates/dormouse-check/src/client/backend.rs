//! A protocol as a backend: commands become requests, responses become replies.
//!
//! ```text
//!   Command -> Protocol::parts -> Pool -> a server -> Protocol::read -> Reply
//! ```
//!
//! A batch is sent in order, one request after the other, on the thread that submits it: it is not
//! one step, others may come in between. A request that waits has a connection and a thread of its
//! own; later requests do not wait for it, and reach the server after it only where a
//! [`ParkObserver`](super::ParkObserver) reports its arrival.
//!
//! A connection that breaks is `unconfirmed`: the command may or may not have happened.

use std::sync::Arc;

use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::limits::BATCH_MAX;

use super::pool::{Connection, Pool};
use super::waiting::{self, Begin, Waiting};

/// A request, and how many items of the command it carries.
#[derive(Debug)]
pub(super) struct Part<C> {
    pub(super) call: C,
    pub(super) items: usize,
}

impl<C> Part<C> {
    /// A command that is one request.
    pub(super) fn whole(call: C) -> Vec<Part<C>> {
        vec![Part { call, items: 1 }]
    }
}

/// How commands are written and replies are read.
pub(super) trait Protocol: Send + Sync + 'static {
    type Connection: Connection;

    /// The requests that carry a command.
    fn parts(&self, command: &Command) -> Result<Vec<Part<Call<Self>>>, Error>;

    /// The reply, from the responses to those requests, each with its number of items.
    fn read(command: &Command, parts: Vec<(usize, Response<Self>)>) -> Answer;
}

type Call<P> = <<P as Protocol>::Connection as Connection>::Call;
type Response<P> = <<P as Protocol>::Connection as Connection>::Response;

/// A server behind a protocol.
pub(super) struct ProtocolBackend<P: Protocol> {
    pub(super) protocol: P,
    pub(super) pool: Arc<Pool<P::Connection>>,
    pub(super) waiting: Arc<Waiting>,
}

impl<P: Protocol> ProtocolBackend<P> {
    fn ask(&self, command: &Command) -> Answer {
        let mut parts = Vec::new();
        for part in self.protocol.parts(command)? {
            let response = self.pool.exchange(&part.call).map_err(|error| broken(&error));
            // Unless it is a list of several requests, the first failure is the last.
            parts.push((part.items, response?));
        }
        P::read(command, parts)
    }

    fn wait(&self, ticket: Ticket, command: Command, sink: &Arc<dyn Sink>) -> Result<(), Error> {
        let Some(part) = self.protocol.parts(&command)?.pop() else {
            return Err(Error::invalid("there is nothing to wait for"));
        };
        let connection = self.pool.take().map_err(|error| broken(&error))?;
        let nothing = waiting::nothing(&command);
        let (call, items) = (part.call, part.items);
        let read = move |response: Result<_, Error>| P::read(&command, vec![(items, response?)]);
        let sink = Arc::clone(sink);
        let begin = Begin { ticket, call, nothing, read, sink };
        self.waiting.begin(&self.pool, connection, begin)
    }
}

impl<P: Protocol> Backend for ProtocolBackend<P> {
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        for Request { ticket, command, .. } in batch {
            let answer = match command {
                Command::Withdraw(waiting) => {
                    self.waiting.withdraw(waiting);
                    Ok(Reply::Done)
                }
                command if waits(&command) => match self.wait(ticket, command, &sink) {
                    Ok(()) => continue,
                    Err(error) => Err(error),
                },
                command => self.ask(&command),
            };
            self.waiting.settle();
            sink.deliver(&mut vec![(ticket, answer)]);
        }
        Ok(())
    }
}

/// Nobody can know whether the server did it.
pub(super) fn broken(error: &std::io::Error) -> Error {
    Error::new(Code::Unconfirmed, format!("the connection broke: {error}"))
}

/// Whether a protocol's connection is taken until the reply.
pub(super) fn waits(command: &Command) -> bool {
    match command {
        Command::Reserve(reserve) => reserve.wait_ms > 0 && reserve.session.is_none(),
        Command::Lock(lock) => lock.wait_ms > 0,
        _ => false,
    }
}

/// Refuses a list that is too long for a backend, where the protocol has no lists and so no limit.
pub(super) fn check_batch(items: usize) -> Result<(), Error> {
    if items > BATCH_MAX {
        return Err(Error::invalid(format!(
            "the batch has {items} items; send at most {BATCH_MAX} at once and the rest after"
        )));
    }
    Ok(())
}

/// The largest span that a protocol can write; it is beyond every limit, too.
pub(super) fn at_most_i64(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}
