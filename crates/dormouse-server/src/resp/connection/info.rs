//! INFO: the facts that clients look for when they connect.

use dormouse_core::error::Error;

use crate::pipeline::Turn;
use crate::resp::args::Args;
use crate::resp::conn::{Conn, PendingReply};

/// The version of Redis whose protocol this is: clients choose their commands by it.
const REDIS: &str = "7.4.0";

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let mut wanted = Vec::new();
    while let Some(section) = args.next() {
        wanted.push(section);
    }
    let is_all = |name: &&[u8]| {
        ["default", "all", "everything"].iter().any(|all| name.eq_ignore_ascii_case(all.as_bytes()))
    };
    let all = wanted.is_empty() || wanted.iter().any(is_all);
    let mut text = String::new();
    for (name, lines) in sections() {
        if all || wanted.iter().any(|asked| asked.eq_ignore_ascii_case(name.as_bytes())) {
            let gap = if text.is_empty() { "" } else { "\r\n" };
            text.push_str(&format!("{gap}# {name}\r\n{lines}"));
        }
    }
    conn.reply(turn).string(text.as_bytes());
    Ok(())
}

fn sections() -> [(&'static str, String); 3] {
    let version = env!("CARGO_PKG_VERSION");
    let pid = std::process::id();
    let server = format!(
        "redis_version:{REDIS}\r\nredis_mode:standalone\r\nserver_name:dormouse\r\n\
         dormouse_version:{version}\r\nprocess_id:{pid}\r\n"
    );
    let persistence = "loading:0\r\nasync_loading:0\r\n".to_owned();
    let replication = "role:master\r\nconnected_slaves:0\r\n".to_owned();
    [("Server", server), ("Persistence", persistence), ("Replication", replication)]
}
