//! resume: end a pause.

use dormouse_core::error::Error;
use dormouse_core::op::Resume;

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
    let topic = conn.topic(Verb::Resume, args.must("topic")?)?;
    conn.send(turn, Resume(topic), None, ReplyKind::Done);
    Ok(())
}
