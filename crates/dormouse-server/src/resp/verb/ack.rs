//! ack: the work is done, the job goes. It may put the jobs that come after it.

use dormouse_core::error::Error;
use dormouse_core::job::Token;
use dormouse_core::limits::{BATCH_MAX, CHAIN_PUTS_MAX};
use dormouse_core::op::{Ack, Chain, ChainReply, EndReply, refused_put};

use super::ReplyKind;
use super::put::{self, PutForm};
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is};
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
    if args.peek().is_some_and(begins_put) {
        return chain(conn, token, args, turn);
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

fn begins_put(word: &[u8]) -> bool {
    is(word, "PUT")
}

/// Reads `PUT topic body [options]`, once for each job.
fn chain(
    conn: &mut Conn,
    token: Token,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let (mut puts, mut forms) = (Vec::new(), Vec::new());
    // One too many is enough to refuse it.
    while args.take("PUT") && puts.len() <= CHAIN_PUTS_MAX {
        let read = put::read(conn, args, begins_put);
        let (put, form) = read.map_err(|error| refused_put(puts.len(), error))?;
        puts.push(put);
        forms.push(form);
    }
    let count = puts.len();
    let check = Some((Verb::Ack, vec![token.id]));
    let kind = ReplyKind::Chain(forms);
    conn.send_for_jobs(turn, count, Chain { token, puts }, check, kind);
    Ok(())
}

/// What became of the job, then each put as `PUT` answers it.
pub(super) fn write_chain(out: &mut Out<'_>, reply: ChainReply, forms: &[PutForm]) {
    out.list(1 + reply.puts.len());
    write(out, reply.end);
    for (put, form) in reply.puts.into_iter().zip(forms) {
        put::write(out, put, *form);
    }
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
