//! extend: prolong a lease.

use dormouse_core::error::Error;
use dormouse_core::op::{Extend, ExtendReply};

use super::ReplyKind;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::Args;
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let token = args.token()?;
    let ttr_ms = if args.len() > 0 { Some(args.span("span")?) } else { None };
    conn.check_ttr("span", ttr_ms, None)?;
    let extend = Extend { token, ttr_ms };
    let check = Some((Verb::Extend, vec![token.id]));
    conn.send(turn, extend, check, ReplyKind::Extended);
    Ok(())
}

/// The new end of the lease.
pub(super) fn write(out: &mut Out<'_>, extended: ExtendReply) {
    out.number(extended.expires_at);
}
