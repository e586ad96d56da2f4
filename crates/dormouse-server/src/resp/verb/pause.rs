//! pause: stop reserve on a topic.

use dormouse_core::error::Error;
use dormouse_core::op::PauseTopic;

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
    let topic = conn.topic(Verb::Pause, args.must("topic")?)?;
    let for_ms = if args.len() > 0 { Some(args.span("span")?) } else { None };
    conn.send(turn, PauseTopic { topic, for_ms }, None, ReplyKind::Done);
    Ok(())
}
