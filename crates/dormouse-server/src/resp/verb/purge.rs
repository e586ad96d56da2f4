//! purge: remove all jobs of a topic that are not leased.

use dormouse_core::error::Error;
use dormouse_core::op::Purge;

use super::ReplyKind;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::Args;
use crate::resp::conn::{Conn, PendingReply};

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let topic = conn.topic(Verb::Purge, args.must("topic")?)?;
    conn.send(turn, Purge(topic), None, ReplyKind::Purged);
    Ok(())
}
