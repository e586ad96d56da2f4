//! HELLO: chooses the version, and may authenticate.

use dormouse_core::error::{Code, Error};

use super::{auth, client};
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, unknown};
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Version;

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let version = match args.next() {
        None => conn.version,
        Some(b"2") => Version::Two,
        Some(b"3") => Version::Three,
        Some(_) => {
            conn.decline(turn, "NOPROTO", "unsupported protocol version; give 2 or 3");
            return Ok(());
        }
    };
    // All of it is read first: a command that is refused authenticates nobody.
    let (mut login, mut name) = (None, None);
    while let Some(word) = args.next() {
        if is(word, "AUTH") {
            login = Some((args.must("user")?, args.must("token")?));
        } else if is(word, "SETNAME") {
            name = Some(client::good_name(args.must("name")?)?);
        } else {
            return Err(unknown(word, &["AUTH", "SETNAME"]));
        }
    }
    if let Some((user, token)) = login
        && !auth::authenticate(conn, user, token)
    {
        conn.decline_as(turn, Code::Unauthorized, auth::WRONG.0, auth::WRONG.1);
        return Ok(());
    }
    if !conn.is_known() {
        let text = "HELLO must be called with the client already authenticated, otherwise with \
                    HELLO 3 AUTH default TOKEN";
        return Err(Error::new(Code::Unauthorized, text));
    }
    if let Some(name) = name {
        conn.name = name.to_vec();
    }
    conn.version = version;
    greet(conn, turn);
    Ok(())
}

fn greet(conn: &Conn, turn: &mut Turn<PendingReply>) {
    let (id, version) = (conn.id, conn.version);
    let mut out = conn.reply(turn);
    out.map(7);
    out.name("server");
    out.string(b"dormouse");
    out.name("version");
    out.string(env!("CARGO_PKG_VERSION").as_bytes());
    out.name("proto");
    out.number(if version == Version::Two { 2 } else { 3 });
    out.name("id");
    out.number(id);
    out.name("mode");
    out.string(b"standalone");
    out.name("role");
    out.string(b"master");
    out.name("modules");
    out.list(0);
}
