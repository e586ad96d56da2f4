//! locks: pages over the partitions of locks, one partition after the other.

use bytes::Bytes;
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::op::{HeldLockView, Locks, LocksCursor, LocksPage};

use super::Fanout;
use crate::limits::LOCK_PARTITIONS;
use crate::scheduler::BATCH_JOBS_MAX;
use crate::wire::{Op, Reader, number};

/// Scripts that one page may need; it ends before it is full if they find few locks.
const SCRIPTS_MAX: usize = 32;

/// What one script found.
struct Portion {
    locks: Vec<HeldLockView>,
    /// The last lock it looked at.
    last: (u64, Bytes),
    /// There are more behind it.
    more: bool,
}

fn op(after: &LocksCursor, most: usize, prefix: &Bytes) -> Op {
    let args = vec![number(after.at), after.name.clone(), number(most as u64), prefix.clone()];
    Op::new("lock_page", args)
}

fn read(reply: &mut Reader<'_>) -> Result<Portion, Error> {
    let bytes = |reply: &mut Reader<'_>| reply.short_bytes().map(Bytes::copy_from_slice);
    let more = reply.u8()? == 1;
    let last = (reply.u48()?, bytes(reply)?);
    let mut locks = Vec::new();
    while !reply.is_empty() {
        let name = bytes(reply)?;
        let (fence, expires_at, depth) = (reply.u64()?, reply.u48()?, reply.u32()?);
        locks.push(HeldLockView { name, owner: bytes(reply)?, fence, depth, expires_at });
    }
    Ok(Portion { locks, last, more })
}

impl Fanout<'_> {
    pub(super) async fn locks(self, page: &Locks) -> Answer {
        let first = |part| LocksCursor { part, at: 0, name: Bytes::new() };
        let mut after = page.check()?.unwrap_or_else(|| first(0));
        let mut locks = Vec::new();
        for _ in 0..SCRIPTS_MAX {
            if after.part >= LOCK_PARTITIONS || locks.len() >= page.limit {
                break;
            }
            let most = BATCH_JOBS_MAX.min(page.limit - locks.len());
            let partition = self.dispatcher.lock_partition_at(after.part);
            let portion = self.ask(&partition, op(&after, most, &page.prefix), read).await?;
            locks.extend(portion.locks);
            after = match portion.more {
                true => {
                    let (at, name) = portion.last;
                    LocksCursor { at, name, ..after }
                }
                false => first(after.part + 1),
            };
        }
        let cursor = (after.part < LOCK_PARTITIONS).then(|| after.write());
        Ok(Reply::Locks(LocksPage { locks, cursor }))
    }
}
