//! AUTH: authenticates by an access token.

use dormouse_core::error::{Code, Error};

use crate::access::hash_token;
use crate::pipeline::Turn;
use crate::resp::args::Args;
use crate::resp::conn::{Conn, PendingReply};

/// The user that clients send unless one is configured.
const DEFAULT_USER: &str = "default";

/// The error for a token that is unknown, or known under another name.
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
    if authenticate(conn, user.unwrap_or(DEFAULT_USER.as_bytes()), token) {
        conn.reply(turn).status("OK");
    } else {
        conn.decline_as(turn, Code::Unauthorized, WRONG.0, WRONG.1);
    }
    Ok(())
}

/// Authenticates by a token under this name; false if that fails.
pub(super) fn authenticate(conn: &mut Conn, user: &[u8], token: &[u8]) -> bool {
    // For a URL without a user, some clients send an empty name.
    let user = if user.is_empty() { DEFAULT_USER.as_bytes() } else { user };
    // Tokens are text: other bytes cannot be one.
    let is_known = match (std::str::from_utf8(user), std::str::from_utf8(token)) {
        (Ok(user), Ok(token)) => conn.authenticate(Some((&hash_token(token), user))),
        _ => false,
    };
    if !is_known {
        conn.token_refused();
    }
    is_known
}
