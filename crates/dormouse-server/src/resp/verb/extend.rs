//! extend: prolong leases.

use dormouse_core::error::Error;
use dormouse_core::job::Token;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Extend, ExtendReply};

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
    let mut tokens = vec![args.token()?];
    let mut ttr_ms = None;
    while args.len() > 0 {
        // Only the last argument may be a span, and no span reads like a token.
        if args.len() == 1 && !args.peek().is_some_and(is_token) {
            ttr_ms = Some(args.span("span")?);
        } else {
            tokens.push(args.token()?);
        }
        if tokens.len() > BATCH_MAX {
            let text = format!("more than {BATCH_MAX} tokens; send at most {BATCH_MAX} at once");
            return Err(Error::invalid(text));
        }
    }
    conn.check_ttr("span", ttr_ms, None)?;
    let check = Some((Verb::Extend, tokens.iter().map(|token| token.id).collect()));
    let kind = if tokens.len() == 1 { ReplyKind::Extended } else { ReplyKind::AllExtended };
    let extends: Vec<Extend> = tokens.into_iter().map(|token| Extend { token, ttr_ms }).collect();
    conn.send(turn, extends, check, kind);
    Ok(())
}

fn is_token(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<Token>().is_ok())
}

/// The new end of the lease.
pub(super) fn write(out: &mut Out<'_>, extended: ExtendReply) {
    out.number(extended.expires_at);
}

/// The new ends of several.
pub(super) fn write_all(out: &mut Out<'_>, items: Vec<Result<ExtendReply, Error>>) {
    out.list(items.len());
    for item in items {
        match item {
            Ok(extended) => write(out, extended),
            Err(error) => fault::write(out, &error),
        }
    }
}
