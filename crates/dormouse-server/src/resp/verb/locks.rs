//! locks: a page of the locks that are held; and the end of one that somebody holds.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::op::{BreakLock, Locks, LocksPage};

use super::ReplyKind;
use super::list::LIMIT_DEFAULT;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, text, unknown};
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    // A cursor holds the name of any lock, so a page is for those who may see all.
    conn.grant().check_verb(Verb::List)?;
    let mut page = Locks { prefix: Bytes::new(), cursor: None, limit: LIMIT_DEFAULT };
    while let Some(word) = args.next() {
        if is(word, "PREFIX") {
            page.prefix = args.bytes("PREFIX")?;
        } else if is(word, "CURSOR") {
            page.cursor = Some(args.text("CURSOR")?.to_owned());
        } else if is(word, "LIMIT") {
            page.limit = args.number("LIMIT")?;
        } else {
            return Err(unknown(word, &["PREFIX", "CURSOR", "LIMIT"]));
        }
    }
    conn.send_last(turn, page, ReplyKind::Locks);
    Ok(())
}

pub(in crate::resp) fn break_lock(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let mut broken = BreakLock { name: args.bytes("name")?, fence: None };
    broken.check()?;
    conn.grant().check(Verb::BreakLock, text("name", &broken.name)?)?;
    if args.take("FENCE") {
        broken.fence = Some(args.number("FENCE")?);
    }
    args.finish(&["FENCE"])?;
    conn.send(turn, broken, None, ReplyKind::Done);
    Ok(())
}

/// The cursor of the next page, or null if this is the last; then the locks, each as name, owner,
/// fence, when it expires, and depth.
pub(super) fn write(out: &mut Out<'_>, page: &LocksPage) {
    out.list(2);
    match &page.cursor {
        Some(cursor) => out.string(cursor.as_bytes()),
        None => out.null(),
    }
    out.list(page.locks.len());
    for lock in &page.locks {
        out.list(5);
        out.string(&lock.name);
        out.string(&lock.owner);
        out.digits(lock.fence);
        out.number(lock.expires_at);
        out.number(u64::from(lock.depth));
    }
}
