//! release: give back without spending the attempt, one lease or those of a topic.

use dormouse_core::error::Error;
use dormouse_core::op::Release;

use super::ReplyKind;
use super::many::Many;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, unknown};
use crate::resp::conn::{Conn, PendingReply};

const OPTIONS: &[&str] = &["DELAY", "PRIORITY"];

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let mut behind = args.clone();
    behind.next();
    if behind.take("MAX") || behind.take("ALL") {
        return Many::release(conn, args, turn);
    }
    let token = args.token()?;
    let mut release = Release { token, delay_ms: None, priority: None };
    while let Some(word) = args.next() {
        if is(word, "DELAY") {
            release.delay_ms = Some(args.span("DELAY")?);
        } else if is(word, "PRIORITY") {
            release.priority = Some(args.number("PRIORITY")?);
        } else {
            return Err(unknown(word, OPTIONS));
        }
    }
    let check = Some((Verb::Release, vec![token.id]));
    conn.send(turn, release, check, ReplyKind::Ended);
    Ok(())
}
