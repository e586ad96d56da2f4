//! purge: remove jobs of a topic that are not leased.

use dormouse_core::error::Error;
use dormouse_core::op::Purge;

use super::{ReplyKind, peek};
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, unknown};
use crate::resp::conn::{Conn, PendingReply};

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let topic = conn.topic(Verb::Purge, args.must("topic")?)?;
    let mut purge = Purge::from(topic);
    while let Some(word) = args.next() {
        if is(word, "STATE") {
            purge.state = Some(peek::state(args.must("STATE")?)?);
        } else if is(word, "AT_MOST") {
            purge.at_most = Some(args.number("AT_MOST")?);
        } else {
            return Err(unknown(word, &["STATE", "AT_MOST"]));
        }
    }
    conn.send(turn, purge, None, ReplyKind::Purged);
    Ok(())
}
