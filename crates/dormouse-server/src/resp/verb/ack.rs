//! ack: the work is done, the job goes.

use dormouse_core::error::Error;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Ack, EndReply};

use super::ReplyKind;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::Args;
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;
use crate::resp::fault;

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    if args.len() == 0 {
        // A worker whose reserve gave nothing acks nothing.
        conn.reply(turn).list(0);
        return Ok(());
    }
    let token = args.token()?;
    if args.len() == 0 {
        if conn.grant().covers_all(Verb::Ack) {
            turn.ack(token, conn.pending(ReplyKind::Ended));
        } else {
            let check = Some((Verb::Ack, vec![token.id]));
            conn.send(turn, Ack(vec![token]), check, ReplyKind::Ended);
        }
        return Ok(());
    }
    if args.len() >= BATCH_MAX {
        let count = args.len() + 1;
        return Err(Error::invalid(format!("{count} tokens; send at most {BATCH_MAX} at once")));
    }
    let mut tokens = vec![token];
    while args.len() > 0 {
        tokens.push(args.token()?);
    }
    let check = Some((Verb::Ack, tokens.iter().map(|token| token.id).collect()));
    conn.send(turn, Ack(tokens), check, ReplyKind::AllEnded);
    Ok(())
}

/// The reply to ack, nack, release and kill.
pub(super) fn write(out: &mut Out<'_>, ended: EndReply) {
    match ended {
        EndReply::Done => out.status("OK"),
        EndReply::Retry { due_at } => {
            out.list(2);
            out.status("RETRY");
            out.number(due_at);
        }
        EndReply::Dead => out.status("DEAD"),
        EndReply::Gone => out.status("GONE"),
    }
}

/// The reply to several of them.
pub(super) fn write_all(out: &mut Out<'_>, items: Vec<Result<EndReply, Error>>) {
    out.list(items.len());
    for item in items {
        match item {
            Ok(ended) => write(out, ended),
            Err(error) => fault::write(out, &error),
        }
    }
}
