//! Encodes the arguments of the script verbs on locks and decodes their replies.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::op::LockReply;

use crate::wire::{Op, Reader, codes, flag, malformed, number, optional};

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

/// At most `most` locks may be held in this partition. `waits`: the caller will wait if another
/// owner holds the lock, and must be woken.
pub(crate) fn op(name: &Bytes, owner: &Bytes, ttl_ms: u64, most: u64, waits: bool) -> Op {
    let args = vec![name.clone(), owner.clone(), number(ttl_ms), number(most), flag(waits)];
    Op::new("lock", args)
}

/// Without `ttl_ms` the lock keeps the ttl it was granted with.
pub(crate) fn op_renew(name: &Bytes, owner: &Bytes, ttl_ms: Option<u64>) -> Op {
    Op::new("renew", vec![name.clone(), owner.clone(), optional(ttl_ms)])
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
pub(crate) fn read_holder(reply: &mut Reader<'_>) -> Result<Bytes, Error> {
    Ok(Bytes::copy_from_slice(reply.rest()))
}

pub(crate) fn op_count() -> Op {
    Op::new("locks", Vec::new())
}

pub(crate) fn read_count(reply: &mut Reader<'_>) -> Result<u64, Error> {
    reply.u64()
}
