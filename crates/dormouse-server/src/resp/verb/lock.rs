//! Locks: take, prolong, give back. Rights are checked on the lock's name as on a topic.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::op::{Lock, LockReply, RenewLock, Unlock};

use super::ReplyKind;
use crate::access::{Verb, without_owner};
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, text, unknown};
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;

/// The TTL of a lock unless one is given.
const TTL_MS_DEFAULT: i64 = 30_000;

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let (name, owner, refusal) = names(conn, args)?;
    let mut lock = Lock { name, owner, ttl_ms: TTL_MS_DEFAULT, wait_ms: 0 };
    while let Some(word) = args.next() {
        if is(word, "TTL") {
            lock.ttl_ms = args.span("TTL")?;
        } else if is(word, "WAIT") {
            lock.wait_ms = args.span("WAIT")?;
        } else {
            return Err(unknown(word, &["TTL", "WAIT"]));
        }
    }
    lock.check()?;
    conn.check_ttr("TTL", Some(lock.ttl_ms), Some(text("name", &lock.name)?))?;
    if lock.wait_ms > 0 {
        conn.send_last(turn, lock, ReplyKind::Held(refusal));
    } else {
        conn.send(turn, lock, None, ReplyKind::Held(refusal));
    }
    Ok(())
}

pub(in crate::resp) fn renew(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let (name, owner, refusal) = names(conn, args)?;
    let ttl_ms = if args.take("TTL") { Some(args.span("TTL")?) } else { None };
    args.finish(&["TTL"])?;
    conn.check_ttr("TTL", ttl_ms, Some(text("name", &name)?))?;
    conn.send(turn, RenewLock { name, owner, ttl_ms }, None, ReplyKind::Held(refusal));
    Ok(())
}

pub(in crate::resp) fn unlock(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let (name, owner, refusal) = names(conn, args)?;
    conn.send(turn, Unlock { name, owner }, None, ReplyKind::Unlocked(refusal));
    Ok(())
}

/// Reads the name of a lock and its owner, and checks the right to lock.
fn names(conn: &Conn, args: &mut Args<'_>) -> Result<(Bytes, Bytes, LockRefusal), Error> {
    let name = args.bytes("name")?;
    let shown = text("name", &name)?;
    conn.grant().check(Verb::Lock, shown)?;
    let hidden = (!conn.grant().allows(Verb::List, shown)).then(|| shown.into());
    Ok((name, args.bytes("owner")?, LockRefusal { hidden }))
}

/// How to tell that a lock is held by another, who may not be named to every caller.
pub(in crate::resp) struct LockRefusal {
    /// The name of the lock whose owner is hidden.
    hidden: Option<Box<str>>,
}

impl LockRefusal {
    pub(super) fn of(&self, refusal: Error) -> Error {
        match &self.hidden {
            Some(name) => without_owner(name, refusal),
            None => refusal,
        }
    }
}

/// The fence, when the lock expires, how often it must be given back.
pub(super) fn write(out: &mut Out<'_>, held: LockReply) {
    out.list(3);
    out.digits(held.fence);
    out.number(held.expires_at);
    out.number(u64::from(held.depth));
}

/// Whether the lock is free now.
pub(super) fn write_unlocked(out: &mut Out<'_>, is_free: bool) {
    out.status(if is_free { "OK" } else { "HELD" });
}
