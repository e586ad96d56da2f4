//! A turn: the requests of one read.

use bytes::BytesMut;
use dormouse_core::command::Command;
use dormouse_core::job::{JobId, Token};
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::Put;

use crate::access::Verb;
use crate::limits::TURN_BYTES_MAX;

/// Requests in the order in which they arrived. The limits of a turn bound what one connection can
/// hold.
pub(crate) struct Turn<T> {
    requests: Vec<Request<T>>,
    bytes: usize,
    is_last: bool,
}

/// A parsed request with its continuation, or several of a kind in a row: they are one command.
pub(crate) struct Request<T> {
    /// `None` if the protocol has answered the request itself.
    pub(super) command: Option<Command>,
    /// The caller must have this right on these jobs, whose topics only the backend knows.
    pub(super) check: Option<(Verb, Vec<JobId>)>,
    pub(super) pending: Pending<T>,
}

/// The continuation of a request.
pub(crate) enum Pending<T> {
    /// The reply is written already.
    Bytes(BytesMut),
    /// The protocol receives the reply to the command.
    One(T),
    /// The command consists of puts or acks in a row; each receives the reply to its item. The
    /// first is kept apart: most rows have no other, and need no memory for them.
    Row(T, Vec<T>),
}

impl<T> Turn<T> {
    #[cfg(test)]
    pub(crate) fn new() -> Turn<T> {
        Turn::reusing(Vec::new())
    }

    /// A turn that puts its requests into this list, which is empty.
    pub(super) fn reusing(requests: Vec<Request<T>>) -> Turn<T> {
        Turn { requests, bytes: 0, is_last: false }
    }

    /// Whether another request may be added.
    pub(crate) fn has_room(&self) -> bool {
        let bytes = self.bytes + self.open_bytes();
        !self.is_last && bytes < TURN_BYTES_MAX && self.requests.len() < BATCH_MAX
    }

    /// The length of the reply written last: it may still grow, so it is not counted yet.
    fn open_bytes(&self) -> usize {
        match self.requests.last() {
            Some(Request { pending: Pending::Bytes(bytes), .. }) => bytes.len(),
            _ => 0,
        }
    }

    fn push(&mut self, request: Request<T>) {
        self.bytes += self.open_bytes();
        self.requests.push(request);
    }

    pub(super) fn into_requests(self) -> Vec<Request<T>> {
        self.requests
    }

    /// The buffer for a reply that needs no backend.
    pub(crate) fn reply_now(&mut self) -> &mut BytesMut {
        if !matches!(self.requests.last(), Some(Request { pending: Pending::Bytes(_), .. })) {
            let pending = Pending::Bytes(BytesMut::new());
            self.requests.push(Request { command: None, check: None, pending });
        }
        // A client may send nothing but such requests: they must fill a turn, too.
        self.bytes += REPLY_BYTES;
        match self.requests.last_mut() {
            Some(Request { pending: Pending::Bytes(bytes), .. }) => bytes,
            _ => unreachable!("it was pushed above"),
        }
    }

    /// Adds a job. Puts in a row become one command.
    pub(crate) fn put(&mut self, put: Put, pending: T) {
        self.bytes += put.body.len() + REQUEST_BYTES;
        match self.requests.last_mut() {
            Some(Request {
                command: Some(Command::Put(puts)),
                pending: Pending::Row(_, others),
                ..
            }) if puts.len() < BATCH_MAX => {
                make_room(puts, others);
                puts.push(put);
                others.push(pending);
            }
            _ => self.push(Request::row(Command::Put(vec![put]), pending)),
        }
    }

    /// Acks one lease. Acks in a row become one command. The caller must have the right to ack on
    /// every topic; where that must be checked first, use `send`.
    pub(crate) fn ack(&mut self, token: Token, pending: T) {
        self.bytes += REQUEST_BYTES;
        match self.requests.last_mut() {
            Some(Request {
                command: Some(Command::Ack(tokens)),
                pending: Pending::Row(_, others),
                ..
            }) if tokens.len() < BATCH_MAX => {
                make_room(tokens, others);
                tokens.push(token);
                others.push(pending);
            }
            _ => self.push(Request::row(Command::Ack(vec![token]), pending)),
        }
    }

    /// Adds a request that the backend answers at once.
    pub(crate) fn send(&mut self, request: Request<T>) {
        self.bytes += REQUEST_BYTES;
        self.push(request);
    }

    /// Adds a request that may wait, or whose reply is large or leads to another request: it is
    /// the last of this turn.
    pub(crate) fn send_last(&mut self, request: Request<T>) {
        self.send(request);
        self.end();
    }

    /// Ends the turn: the last request changes how the protocol reads those behind it.
    pub(crate) fn end(&mut self) {
        self.is_last = true;
    }
}

/// The weight of a request besides its body: with the bound of a turn it bounds the number of
/// requests in a turn.
const REQUEST_BYTES: usize = 128;
/// The weight of a reply that needs no backend, besides its bytes.
const REPLY_BYTES: usize = 32;

/// A row with a second item gets room for so many more: growing step by step would move the items
/// each time.
const ROW_ROOM: usize = 15;

/// Makes room for the items of a row that has got a second one.
fn make_room<I, T>(items: &mut Vec<I>, others: &mut Vec<T>) {
    if others.is_empty() {
        items.reserve_exact(ROW_ROOM);
        others.reserve_exact(ROW_ROOM);
    }
}

impl<T> Request<T> {
    pub(crate) fn new(command: impl Into<Command>, pending: T) -> Request<T> {
        Request::checked(command, None, pending)
    }

    /// A request that is refused unless the caller has this right on these jobs.
    pub(crate) fn checked(
        command: impl Into<Command>,
        check: Option<(Verb, Vec<JobId>)>,
        pending: T,
    ) -> Request<T> {
        Request { command: Some(command.into()), check, pending: Pending::One(pending) }
    }

    /// The command and the continuation of a single request.
    #[cfg(test)]
    pub(crate) fn into_parts(self) -> (Command, T) {
        match (self.command, self.pending) {
            (Some(command), Pending::One(pending)) => (command, pending),
            _ => panic!("it is not a single request"),
        }
    }

    fn row(command: Command, pending: T) -> Request<T> {
        Request { command: Some(command), check: None, pending: Pending::Row(pending, Vec::new()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some commands are much shorter than their replies.
    #[test]
    fn long_replies_fill_a_turn() {
        let mut turn: Turn<()> = Turn::new();
        turn.reply_now().extend_from_slice(&[0; TURN_BYTES_MAX / 2]);
        assert!(turn.has_room());
        turn.ack(Token { id: JobId(1), fence: 1 }, ());
        turn.reply_now().extend_from_slice(&[0; TURN_BYTES_MAX / 2]);
        assert!(!turn.has_room());
    }
}
