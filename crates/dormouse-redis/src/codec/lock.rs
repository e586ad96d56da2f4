//! Locks, in words of the script.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::op::LockReply;

use crate::wire::{Op, Reader, strange};

/// What became of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LockStatus {
    /// It is held so now; given back, its depth is what is left, 0 = it is free.
    Done(LockReply),
    /// Nobody holds it: nothing to renew or give back.
    Free,
    /// Somebody else holds it, until then unless it is renewed.
    Held { owner: Bytes, expires_at: u64 },
    /// So many are held that no more are granted.
    TooMany,
}

fn number(value: u64) -> Bytes {
    Bytes::from(value.to_string())
}

/// `most` locks may be held in this partition; `waits` = who asks will wait if somebody holds it.
pub(crate) fn op(name: &Bytes, owner: &Bytes, ttl_ms: u64, most: u64, waits: bool) -> Op {
    let waits = Bytes::from_static(if waits { b"1" } else { b"" });
    Op::new("lock", vec![name.clone(), owner.clone(), number(ttl_ms), number(most), waits])
}

/// Without a ttl as it was granted.
pub(crate) fn op_renew(name: &Bytes, owner: &Bytes, ttl_ms: Option<u64>) -> Op {
    let ttl = ttl_ms.map_or_else(Bytes::new, number);
    Op::new("renew", vec![name.clone(), owner.clone(), ttl])
}

pub(crate) fn op_unlock(name: &Bytes, owner: &Bytes) -> Op {
    Op::new("unlock", vec![name.clone(), owner.clone()])
}

/// The answer to lock, renew and unlock.
pub(crate) fn read(answer: &mut Reader<'_>) -> Result<LockStatus, Error> {
    let (outcome, fence) = (answer.u8()?, answer.u64()?);
    let (expires_at, depth) = (answer.u48()?, answer.u32()?);
    let owner = Bytes::copy_from_slice(answer.short_bytes()?);
    Ok(match outcome {
        0 => LockStatus::Done(LockReply { fence, expires_at, depth }),
        2 => LockStatus::Free,
        3 => LockStatus::Held { owner, expires_at },
        6 => LockStatus::TooMany,
        _ => return Err(strange("a lock came to nothing known")),
    })
}

/// Who holds it.
pub(crate) fn op_holder(name: &Bytes) -> Op {
    Op::new("holder", vec![name.clone()])
}

/// Who holds it; nobody has an empty name.
pub(crate) fn read_holder(answer: &Reader<'_>) -> Bytes {
    Bytes::copy_from_slice(answer.rest())
}

/// How many are held.
pub(crate) fn op_count() -> Op {
    Op::new("locks", Vec::new())
}

pub(crate) fn read_count(answer: &mut Reader<'_>) -> Result<u64, Error> {
    answer.u64()
}
