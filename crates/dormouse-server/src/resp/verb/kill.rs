//! kill: make a job dead; a leased job by its token, a waiting one by its id or key.

use dormouse_core::error::Error;
use dormouse_core::op::{Kill, KillTarget};

use super::ReplyKind;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, unknown};
use crate::resp::conn::{Conn, PendingReply, check_of};

const OPTIONS: &[&str] = &["PRIORITY", "ERROR"];

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let mut behind = args.clone();
    behind.next();
    // A topic may look like a token: then `KEY` decides.
    let is_token = args.peek().is_some_and(looks_like_token) && !behind.take("KEY");
    let (target, check) = if is_token {
        let token = args.token()?;
        (KillTarget::Token(token), Some((Verb::Kill, vec![token.id])))
    } else {
        let target = conn.target(Verb::Kill, OPTIONS, args)?;
        let check = check_of(Verb::Kill, &target);
        (KillTarget::Resting(target), check)
    };
    let mut kill = Kill { target, error: None, priority: None };
    while let Some(word) = args.next() {
        if is(word, "PRIORITY") {
            kill.priority = Some(args.number("PRIORITY")?);
        } else if is(word, "ERROR") {
            kill.error = Some(args.bytes("ERROR")?);
        } else {
            return Err(unknown(word, OPTIONS));
        }
    }
    conn.send(turn, kill, check, ReplyKind::Ended);
    Ok(())
}

/// Whether it looks like a token: it has a dot, and unlike most topics with dots no letters.
fn looks_like_token(word: &[u8]) -> bool {
    word.contains(&b'.') && word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}
