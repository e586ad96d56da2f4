//! PING, ECHO, QUIT, RESET, SELECT and CONFIG.

use dormouse_core::error::Error;

use crate::pipeline::Turn;
use crate::resp::args::{Args, is, shown};
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Version;
use crate::resp::fault::ERR;

pub(in crate::resp) fn ping(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let mut out = conn.reply(turn);
    match args.next() {
        Some(message) => out.string(message),
        None => out.status("PONG"),
    }
    Ok(())
}

pub(in crate::resp) fn echo(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    conn.reply(turn).string(args.must("message")?);
    Ok(())
}

pub(in crate::resp) fn quit(
    conn: &mut Conn,
    _: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    conn.is_over = true;
    conn.reply(turn).status("OK");
    Ok(())
}

/// Resets the state of the connection.
pub(in crate::resp) fn reset(
    conn: &mut Conn,
    _: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    conn.authenticate(None);
    conn.version = Version::Two;
    conn.name.clear();
    conn.reply(turn).status("RESET");
    Ok(())
}

pub(in crate::resp) fn select(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    if args.must("index")? == b"0" {
        conn.reply(turn).status("OK");
    } else {
        conn.decline(turn, ERR, "DB index is out of range; there is one database: 0");
    }
    Ok(())
}

/// Settings that benchmark tools ask for first. The settings of this server are in its own
/// configuration.
const SETTINGS: [(&str, &str); 2] = [("save", ""), ("appendonly", "yes")];

pub(in crate::resp) fn config(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let sub = args.must("subcommand")?;
    if !is(sub, "GET") {
        let text = format!("CONFIG {} is not known here; only CONFIG GET is", shown(sub));
        conn.decline(turn, ERR, &text);
        return Ok(());
    }
    let mut asked = Vec::new();
    while let Some(name) = args.next() {
        asked.push(name);
    }
    let known = |(name, _): &&(&str, &str)| asked.iter().any(|asked| is(asked, name));
    let found: Vec<_> = SETTINGS.iter().filter(known).collect();
    let mut out = conn.reply(turn);
    out.map(found.len());
    for (name, value) in found {
        out.name(name);
        out.string(value.as_bytes());
    }
    Ok(())
}
