//! nack: the attempt failed, the job is tried again later.

use dormouse_core::error::Error;
use dormouse_core::op::Nack;

use super::ReplyKind;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, unknown};
use crate::resp::conn::{Conn, PendingReply};

const OPTIONS: &[&str] = &["DELAY", "PRIORITY", "ERROR"];

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let token = args.token()?;
    let mut nack = Nack { token, delay_ms: None, priority: None, error: None };
    while let Some(word) = args.next() {
        if is(word, "DELAY") {
            nack.delay_ms = Some(args.span("DELAY")?);
        } else if is(word, "PRIORITY") {
            nack.priority = Some(args.number("PRIORITY")?);
        } else if is(word, "ERROR") {
            nack.error = Some(args.bytes("ERROR")?);
        } else {
            return Err(unknown(word, OPTIONS));
        }
    }
    let check = Some((Verb::Nack, vec![token.id]));
    conn.send(turn, nack, check, ReplyKind::Ended);
    Ok(())
}
