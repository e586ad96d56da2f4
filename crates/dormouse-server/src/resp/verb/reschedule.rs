//! reschedule: move the due time of a waiting job.

use dormouse_core::error::Error;
use dormouse_core::op::Reschedule;

use super::ReplyKind;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, unknown};
use crate::resp::conn::{Conn, PendingReply, check_of};

const OPTIONS: &[&str] = &["DELAY", "AT", "NOW"];

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let target = conn.target(Verb::Reschedule, OPTIONS, args)?;
    let check = check_of(Verb::Reschedule, &target);
    let mut reschedule = Reschedule { target, delay_ms: None, at_ms: None };
    let word = args.must("DELAY, AT or NOW")?;
    if is(word, "DELAY") {
        reschedule.delay_ms = Some(args.span("DELAY")?);
    } else if is(word, "AT") {
        reschedule.at_ms = Some(args.instant("AT")?);
    } else if !is(word, "NOW") {
        return Err(unknown(word, OPTIONS));
    }
    args.finish(&[])?;
    conn.send(turn, reschedule, check, ReplyKind::Changed);
    Ok(())
}
