//! revive: make dead jobs ready, one of them or those of a topic.

use dormouse_core::error::Error;
use dormouse_core::op::Revive;

use super::ReplyKind;
use super::many::Many;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::Args;
use crate::resp::conn::{Conn, PendingReply, check_of};

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let mut behind = args.clone();
    behind.next();
    if behind.take("MAX") || behind.take("ALL") {
        return Many::revive(conn, args, turn);
    }
    let target = conn.target(Verb::Revive, &[], args)?;
    args.finish(&["KEY", "MAX", "ALL"])?;
    let check = check_of(Verb::Revive, &target);
    conn.send(turn, Revive(vec![target]), check, ReplyKind::Changed);
    Ok(())
}
