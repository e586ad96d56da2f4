//! AUTH: show an access token.

use dormouse_core::error::{Code, Error};

use crate::access::hash_token;
use crate::pipeline::Turn;
use crate::resp::args::Args;
use crate::resp::conn::{Conn, PendingReply};

/// Whom clients name if nobody told them a name.
const ANYBODY: &str = "default";

/// What is said about a token that is not known, or not of this name.
pub(super) const WRONG: (&str, &str) = (
    "WRONGPASS",
    "the access token is not known here, it may have been replaced; or the user is neither \
     'default' nor the token's name",
);

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let user = if args.len() == 2 { args.next() } else { None };
    let token = args.must("token")?;
    if show(conn, user.unwrap_or(ANYBODY.as_bytes()), token) {
        conn.reply(turn).status("OK");
    } else {
        conn.decline_as(turn, Code::Unauthorized, WRONG.0, WRONG.1);
    }
    Ok(())
}

/// Whether this token is known under this name; if so, it is the connection's from now on.
pub(super) fn show(conn: &mut Conn, user: &[u8], token: &[u8]) -> bool {
    // Of a URL without a user some clients send an empty name.
    let user = if user.is_empty() { ANYBODY.as_bytes() } else { user };
    // Tokens are text: what is none is nobody's.
    match (std::str::from_utf8(user), std::str::from_utf8(token)) {
        (Ok(user), Ok(token)) => conn.show(Some((&hash_token(token), user))),
        _ => false,
    }
}
