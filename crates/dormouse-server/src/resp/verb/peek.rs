//! peek: look at the next job of a state.

use dormouse_core::error::Error;
use dormouse_core::job::State;
use dormouse_core::op::{JobView, Peek};

use super::{ReplyKind, job};
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, shown};
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;
use crate::units::STATES;

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let topic = conn.topic(Verb::List, args.must("topic")?)?;
    let state = args.next().map_or(Ok(State::Ready), state)?;
    let peek = Peek { topic, state };
    conn.send_last(turn, peek, ReplyKind::Peeked);
    Ok(())
}

/// Reads the word for a state.
pub(super) fn state(word: &[u8]) -> Result<State, Error> {
    STATES.into_iter().find(|state| is(word, state.as_str())).ok_or_else(|| {
        let shown = shown(word);
        Error::invalid(format!("{shown} is not a state; give ready, delayed, leased, dead or done"))
    })
}

/// The job, or null if there is none.
pub(super) fn write(out: &mut Out<'_>, view: Option<&JobView>) {
    match view {
        Some(view) => job::write_view(out, view, true),
        None => out.null(),
    }
}
