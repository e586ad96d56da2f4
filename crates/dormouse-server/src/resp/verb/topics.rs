//! topics: a page of the topics that the caller may see.

use dormouse_core::error::Error;
use dormouse_core::op::{Topics, TopicsPage};
use dormouse_core::topic::TopicName;

use super::list::LIMIT_DEFAULT;
use super::{NextCommand, ReplyKind, stats};
use crate::access::{Grant, Verb};
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, unknown};
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;
use crate::walk::Walk;

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    if !conn.grant().may_somewhere(Verb::List) {
        conn.grant().check_verb(Verb::List)?;
    }
    let mut wanted = Topics { after: None, limit: LIMIT_DEFAULT };
    while let Some(word) = args.next() {
        if is(word, "AFTER") {
            wanted.after = Some(TopicName::new(args.text("AFTER")?)?);
        } else if is(word, "LIMIT") {
            wanted.limit = args.number("LIMIT")?;
        } else {
            return Err(unknown(word, &["AFTER", "LIMIT"]));
        }
    }
    let mut walk = Box::new(Walk::new(wanted)?);
    match walk.next(conn.grant()) {
        Some(portion) => conn.send_last(turn, portion, ReplyKind::Topics(walk)),
        None => write(&mut conn.reply(turn), *walk),
    }
    Ok(())
}

/// Adds a portion to the page, and sends for the next.
pub(super) fn on_page(
    grant: &Grant,
    out: &mut Out<'_>,
    mut walk: Walk,
    page: TopicsPage,
) -> NextCommand {
    walk.take(grant, page);
    match walk.next(grant) {
        Some(portion) => Ok(Some((portion.into(), ReplyKind::Topics(Box::new(walk))))),
        None => {
            write(out, walk);
            Ok(None)
        }
    }
}

/// Where the next page begins, or null if this is the last; then the topics.
fn write(out: &mut Out<'_>, walk: Walk) {
    let page = walk.into_page();
    out.list(2);
    match page.topics.last().filter(|_| page.more) {
        Some((name, _)) => out.string(name.as_str().as_bytes()),
        None => out.null(),
    }
    out.list(page.topics.len());
    for (name, counts) in &page.topics {
        stats::write(out, Some(name), counts, false);
    }
}
