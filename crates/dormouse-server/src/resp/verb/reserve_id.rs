//! reserve_id: take a given job now, regardless of its due time.

use dormouse_core::error::Error;
use dormouse_core::op::ReserveId;

use super::ReplyKind;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, unknown};
use crate::resp::conn::{Conn, PendingReply};

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let id = args.id()?;
    let mut reserve = ReserveId { id, ttr_ms: None, session: None };
    let mut full = false;
    while let Some(word) = args.next() {
        if is(word, "TTR") {
            reserve.ttr_ms = Some(args.span("TTR")?);
        } else if is(word, "FULL") {
            full = true;
        } else {
            return Err(unknown(word, &["TTR", "FULL"]));
        }
    }
    conn.check_ttr("TTR", reserve.ttr_ms, None)?;
    let check = Some((Verb::Reserve, vec![id]));
    conn.send_for_jobs(turn, 1, reserve, check, ReplyKind::Jobs { full });
    Ok(())
}
