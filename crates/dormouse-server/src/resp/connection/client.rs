//! CLIENT: facts about this connection.

use dormouse_core::error::Error;

use crate::pipeline::Turn;
use crate::resp::args::{Args, is, shown};
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Version;
use crate::resp::fault::ERR;

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let sub = args.must("subcommand")?;
    if is(sub, "ID") {
        let id = conn.id;
        conn.reply(turn).number(id);
    } else if is(sub, "GETNAME") {
        let mut out = conn.reply(turn);
        if conn.name.is_empty() { out.null() } else { out.string(&conn.name) }
    } else if is(sub, "SETNAME") {
        conn.name = good_name(args.must("name")?)?.to_vec();
        conn.reply(turn).status("OK");
    } else if is(sub, "INFO") || is(sub, "LIST") {
        let line = line(conn);
        conn.reply(turn).string(line.as_bytes());
    } else if ["SETINFO", "NO-EVICT", "NO-TOUCH"].iter().any(|word| is(sub, word)) {
        // Accepted and ignored: nothing here depends on them.
        conn.reply(turn).status("OK");
    } else if is(sub, "REPLY") {
        let text = "CLIENT REPLY is refused: this server answers every command";
        conn.decline(turn, ERR, text);
    } else {
        let text = format!("unknown subcommand {} of CLIENT", shown(sub));
        conn.decline(turn, ERR, &text);
    }
    Ok(())
}

/// Checks that a name does not break the line of CLIENT LIST.
pub(super) fn good_name(name: &[u8]) -> Result<&[u8], Error> {
    if name.len() <= 200 && name.iter().all(u8::is_ascii_graphic) {
        return Ok(name);
    }
    let shown = shown(name);
    Err(Error::invalid(format!(
        "name {shown} has more than 200 bytes, or a blank or another invisible character"
    )))
}

/// This connection; others are not shown.
fn line(conn: &Conn) -> String {
    let name = String::from_utf8_lossy(&conn.name);
    let version = if conn.version == Version::Two { 2 } else { 3 };
    format!("id={} name={name} db=0 user={} resp={version}\n", conn.id, conn.grant().name())
}
