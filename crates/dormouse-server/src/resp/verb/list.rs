//! list: a page of jobs of a state.

use dormouse_core::error::Error;
use dormouse_core::op::{List, Page};

use super::{ReplyKind, job, peek};
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, unknown};
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;

/// Items of a page unless LIMIT is given.
pub(super) const LIMIT_DEFAULT: usize = 100;

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let topic = conn.topic(Verb::List, args.must("topic")?)?;
    let state = peek::state(args.must("state")?)?;
    let mut list = List { topic, state, cursor: None, limit: LIMIT_DEFAULT };
    let mut bodies = true;
    while let Some(word) = args.next() {
        if is(word, "CURSOR") {
            list.cursor = Some(args.text("CURSOR")?.to_owned());
        } else if is(word, "LIMIT") {
            list.limit = args.number("LIMIT")?;
        } else if is(word, "NOBODIES") {
            bodies = false;
        } else {
            return Err(unknown(word, &["CURSOR", "LIMIT", "NOBODIES"]));
        }
    }
    conn.send_last(turn, list, ReplyKind::Page { bodies });
    Ok(())
}

/// The cursor of the next page, or null if this is the last; then the jobs.
pub(super) fn write(out: &mut Out<'_>, page: &Page, bodies: bool) {
    out.list(2);
    match &page.cursor {
        Some(cursor) => out.string(cursor.as_bytes()),
        None => out.null(),
    }
    out.list(page.jobs.len());
    for view in &page.jobs {
        job::write_view(out, view, bodies);
    }
}
