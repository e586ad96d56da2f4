//! cancel: remove a job.

use dormouse_core::error::Error;
use dormouse_core::op::{Cancel, ChangeReply};

use super::ReplyKind;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::Args;
use crate::resp::conn::{Conn, PendingReply, check_of};
use crate::resp::encode::Out;

const OPTIONS: &[&str] = &["UNLESS_LEASED"];

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let target = conn.target(Verb::Cancel, OPTIONS, args)?;
    let unless_leased = args.take("UNLESS_LEASED");
    args.finish(OPTIONS)?;
    let check = check_of(Verb::Cancel, &target);
    let cancel = Cancel { target, unless_leased };
    conn.send(turn, cancel, check, ReplyKind::Cancelled);
    Ok(())
}

/// The id of the job, and its state.
pub(super) fn write(out: &mut Out<'_>, changed: ChangeReply) {
    out.list(2);
    out.digits(changed.id.0);
    out.string(changed.was.as_str().as_bytes());
}
