//! A turn: the commands of one read, and what comes of them.

use crate::limits::TURN_BYTES_MAX;
use bytes::BytesMut;
use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, Token};
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{EndReply, Put, PutReply};

use crate::access::Verb;
use crate::client::unexpected;

/// Commands that go to the backend together, and words that need no backend, in their order.
pub(crate) struct Turn<T> {
    items: Vec<Item<T>>,
    bytes: usize,
    is_last: bool,
}

/// One command and what to do with its outcome.
pub(crate) struct Step<T> {
    /// What to ask the backend.
    pub(crate) command: Command,
    /// Before that: may the caller do this with these jobs, whose topics only the backend knows?
    pub(crate) check: Option<(Verb, Vec<JobId>)>,
    /// Goes back to the protocol with the outcome.
    pub(crate) then: T,
}

/// What came of a command.
#[expect(clippy::large_enum_variant, reason = "it goes from hand to hand and rests nowhere")]
pub(crate) enum Outcome {
    /// Of `Turn::put`.
    Put(Result<PutReply, Error>),
    /// Of `Turn::ack`.
    Acked(Result<EndReply, Error>),
    /// Of `Turn::ask`, `Turn::ask_last` and of what `Protocol::write` gave.
    Answer(Answer),
}

pub(super) enum Item<T> {
    /// Needs no backend.
    Say(BytesMut),
    /// Puts that came one after the other.
    Puts(Vec<Put>, Vec<T>),
    /// Acks that came one after the other.
    Acks(Vec<Token>, Vec<T>),
    /// Anything else.
    Ask(Step<T>),
}

impl<T> Turn<T> {
    /// Nothing asked and nothing said.
    pub(crate) fn new() -> Turn<T> {
        Turn { items: Vec::new(), bytes: 0, is_last: false }
    }

    /// Whether another command may be added.
    pub(crate) fn has_room(&self) -> bool {
        let bytes = self.bytes + self.open_words();
        !self.is_last && bytes < TURN_BYTES_MAX && self.items.len() < BATCH_MAX
    }

    /// Bytes of the words said last: more may be added to them, so they are not counted yet.
    fn open_words(&self) -> usize {
        match self.items.last() {
            Some(Item::Say(said)) => said.len(),
            _ => 0,
        }
    }

    fn push(&mut self, item: Item<T>) {
        self.bytes += self.open_words();
        self.items.push(item);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn into_items(self) -> Vec<Item<T>> {
        self.items
    }

    /// Where to write what can be answered without the backend.
    pub(crate) fn say(&mut self) -> &mut BytesMut {
        if !matches!(self.items.last(), Some(Item::Say(_))) {
            self.items.push(Item::Say(BytesMut::new()));
        }
        // So that words count too: a client may ask for nothing else.
        self.bytes += SAID_BYTES;
        match self.items.last_mut() {
            Some(Item::Say(said)) => said,
            _ => unreachable!("it was pushed above"),
        }
    }

    /// Adds a job. Puts in a row are one command.
    pub(crate) fn put(&mut self, put: Put, then: T) {
        self.bytes += put.body.len() + STEP_BYTES;
        match self.items.last_mut() {
            Some(Item::Puts(puts, thens)) if puts.len() < BATCH_MAX => {
                puts.push(put);
                thens.push(then);
            }
            _ => self.push(Item::Puts(vec![put], vec![then])),
        }
    }

    /// Acks one lease. Acks in a row are one command. The caller may ack on every topic; where that
    /// is to be asked first, use `ask`.
    pub(crate) fn ack(&mut self, token: Token, then: T) {
        self.bytes += STEP_BYTES;
        match self.items.last_mut() {
            Some(Item::Acks(tokens, thens)) if tokens.len() < BATCH_MAX => {
                tokens.push(token);
                thens.push(then);
            }
            _ => self.push(Item::Acks(vec![token], vec![then])),
        }
    }

    /// Asks something that is answered at once.
    pub(crate) fn ask(&mut self, step: Step<T>) {
        self.bytes += STEP_BYTES;
        self.push(Item::Ask(step));
    }

    /// Asks something that may wait, or whose answer is large or decides what is asked next: it is
    /// the last of this turn.
    pub(crate) fn ask_last(&mut self, step: Step<T>) {
        self.ask(step);
        self.end();
    }

    /// Nothing more is added: what the protocol has read last changes how the rest is judged.
    pub(crate) fn end(&mut self) {
        self.is_last = true;
    }
}

/// What a step is taken to weigh besides a body: together with the bound of a turn it bounds how
/// many commands a turn has.
const STEP_BYTES: usize = 128;
/// What words are taken to weigh.
const SAID_BYTES: usize = 32;

impl<T> Step<T> {
    /// A command that needs no look at jobs first.
    pub(crate) fn new(command: Command, then: T) -> Step<T> {
        Step { command, check: None, then }
    }
}

/// One outcome for each put of a command.
pub(super) fn outcomes_of_puts(answer: Answer, count: usize) -> Vec<Outcome> {
    match answer {
        Ok(Reply::Put(replies)) if replies.len() == count => {
            replies.into_iter().map(Outcome::Put).collect()
        }
        Ok(other) => vec_of(count, || Outcome::Put(Err(unexpected(&other)))),
        Err(error) => vec_of(count, || Outcome::Put(Err(error.clone()))),
    }
}

/// As above, of acks.
pub(super) fn outcomes_of_acks(answer: Answer, count: usize) -> Vec<Outcome> {
    match answer {
        Ok(Reply::Ended(items)) if items.len() == count => {
            items.into_iter().map(Outcome::Acked).collect()
        }
        Ok(other) => vec_of(count, || Outcome::Acked(Err(unexpected(&other)))),
        Err(error) => vec_of(count, || Outcome::Acked(Err(error.clone()))),
    }
}

fn vec_of<U>(count: usize, make: impl FnMut() -> U) -> Vec<U> {
    std::iter::repeat_with(make).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some commands are much shorter than what is said to them.
    #[test]
    fn long_words_fill_a_turn() {
        let mut turn: Turn<()> = Turn::new();
        turn.say().extend_from_slice(&[0; TURN_BYTES_MAX / 2]);
        assert!(turn.has_room());
        turn.ack(Token { id: JobId(1), fence: 1 }, ());
        turn.say().extend_from_slice(&[0; TURN_BYTES_MAX / 2]);
        assert!(!turn.has_room());
    }
}
