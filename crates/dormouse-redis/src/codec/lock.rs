//! Encodes the arguments of the script verbs on locks and decodes their replies.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::op::LockReply;

use crate::wire::{Op, Reader, codes, malformed};

/// The result of a lock, renew or unlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LockStatus {
    /// The lock as it is now; after an unlock, depth 0 means that it is free.
    Done(LockReply),
    /// Nobody holds it, so it can be neither renewed nor unlocked.
    Free,
    /// Another owner holds it.
    Held { owner: Bytes, expires_at: u64 },
    /// The limit of locks held is reached.
    TooMany,
}

fn number(value: u64) -> Bytes {
    Bytes::from(value.to_string())
}

/// At most `most` locks may be held in this partition. `waits`: the caller will wait if another
/// owner holds the lock, and must be woken.
pub(crate) fn op(name: &Bytes, owner: &Bytes, ttl_ms: u64, most: u64, waits: bool) -> Op {
    let waits = Bytes::from_static(if waits { b"1" } else { b"" });
    Op::new("lock", vec![name.clone(), owner.clone(), number(ttl_ms), number(most), waits])
}

/// Without `ttl_ms` the lock keeps the ttl it was granted with.
pub(crate) fn op_renew(name: &Bytes, owner: &Bytes, ttl_ms: Option<u64>) -> Op {
    let ttl = ttl_ms.map_or_else(Bytes::new, number);
    Op::new("renew", vec![name.clone(), owner.clone(), ttl])
}

pub(crate) fn op_unlock(name: &Bytes, owner: &Bytes) -> Op {
    Op::new("unlock", vec![name.clone(), owner.clone()])
}

/// Decodes the reply to lock, renew and unlock.
pub(crate) fn read(reply: &mut Reader<'_>) -> Result<LockStatus, Error> {
    let (code, fence) = (reply.u8()?, reply.u64()?);
    let (expires_at, depth) = (reply.u48()?, reply.u32()?);
    let owner = Bytes::copy_from_slice(reply.short_bytes()?);
    Ok(match code {
        codes::DONE => LockStatus::Done(LockReply { fence, expires_at, depth }),
        codes::GONE => LockStatus::Free,
        codes::LOST => LockStatus::Held { owner, expires_at },
        codes::TOO_MANY => LockStatus::TooMany,
        _ => return Err(malformed("unknown result of a lock")),
    })
}

pub(crate) fn op_holder(name: &Bytes) -> Op {
    Op::new("holder", vec![name.clone()])
}

/// The owner; empty = the lock is free.
pub(crate) fn read_holder(reply: &Reader<'_>) -> Bytes {
    Bytes::copy_from_slice(reply.rest())
}

pub(crate) fn op_count() -> Op {
    Op::new("locks", Vec::new())
}

pub(crate) fn read_count(reply: &mut Reader<'_>) -> Result<u64, Error> {
    reply.u64()
}
