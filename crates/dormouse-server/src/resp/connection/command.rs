//! COMMAND: describes the commands.

use dormouse_core::error::Error;

use crate::pipeline::Turn;
use crate::resp::args::{Args, is, shown};
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;
use crate::resp::fault::ERR;
use crate::resp::spec::{COMMANDS, CommandNo, CommandSpec, Kind};

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let Some(sub) = args.next() else {
        write_infos(&mut conn.reply(turn), COMMANDS.iter().map(Some));
        return Ok(());
    };
    if is(sub, "COUNT") {
        conn.reply(turn).number(COMMANDS.len() as u64);
    } else if is(sub, "LIST") {
        let mut out = conn.reply(turn);
        out.list(COMMANDS.len());
        COMMANDS.iter().for_each(|spec| out.string(lower(spec).as_bytes()));
    } else if is(sub, "INFO") && args.len() > 0 {
        write_infos(&mut conn.reply(turn), named(args).into_iter());
    } else if is(sub, "INFO") {
        write_infos(&mut conn.reply(turn), COMMANDS.iter().map(Some));
    } else if is(sub, "DOCS") {
        let specs = if args.len() > 0 { named(args) } else { COMMANDS.iter().map(Some).collect() };
        write_docs(&mut conn.reply(turn), specs.into_iter().flatten().collect());
    } else {
        let text = format!("unknown subcommand {} of COMMAND", shown(sub));
        conn.decline(turn, ERR, &text);
    }
    Ok(())
}

/// The commands of these names, one entry per name.
fn named(args: &mut Args<'_>) -> Vec<Option<&'static CommandSpec>> {
    let mut found = Vec::new();
    // More names than there are commands are ignored: the reply must stay bounded.
    while let Some(name) = args.next().filter(|_| found.len() < COMMANDS.len()) {
        found.push(CommandNo::find(name).and_then(CommandNo::spec));
    }
    found
}

fn lower(spec: &CommandSpec) -> String {
    spec.name.to_lowercase()
}

fn write_infos(
    out: &mut Out<'_>,
    specs: impl ExactSizeIterator<Item = Option<&'static CommandSpec>>,
) {
    out.list(specs.len());
    for spec in specs {
        match spec {
            Some(spec) => write_info(out, spec),
            None => out.null(),
        }
    }
}

/// Name, number of arguments, flags, where keys are, categories, tips, keys, subcommands. No
/// argument is a key in the sense of Redis: it does not decide on a node.
fn write_info(out: &mut Out<'_>, spec: &CommandSpec) {
    out.list(10);
    out.string(lower(spec).as_bytes());
    let with_name = spec.min as i64 + 1;
    out.signed(if spec.min == spec.max { with_name } else { -with_name });
    let (flag, category) = match spec.kind {
        Kind::Write => ("write", "@write"),
        Kind::Read => ("readonly", "@read"),
        Kind::Connection => ("fast", "@connection"),
        Kind::NoAuth => ("no_auth", "@connection"),
    };
    out.list(1);
    out.status(flag);
    (0..3).for_each(|_| out.number(0));
    out.list(1);
    out.status(category);
    (0..3).for_each(|_| out.list(0));
}

fn write_docs(out: &mut Out<'_>, specs: Vec<&'static CommandSpec>) {
    out.map(specs.len());
    for spec in specs {
        out.string(lower(spec).as_bytes());
        out.map(4);
        out.name("summary");
        out.string(format!("{}: {} {}", spec.summary, spec.name, spec.usage).trim_end().as_bytes());
        out.name("since");
        out.string(env!("CARGO_PKG_VERSION").as_bytes());
        out.name("group");
        out.string(match spec.kind {
            Kind::Write | Kind::Read => b"dormouse",
            Kind::Connection | Kind::NoAuth => b"connection",
        });
        out.name("complexity");
        out.string(b"O(log N)");
    }
}
