//! locks: pages over all partitions of locks, merged in the order in which the locks end.

use bytes::Bytes;
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::op::{HeldLockView, Locks, LocksCursor, LocksPage};

use super::Fanout;
use crate::limits::LOCK_PARTITIONS;
use crate::partition::Effect;
use crate::scheduler::BATCH_JOBS_MAX;
use crate::wire::{Op, Reader, number};

/// How often one page may ask all partitions; it ends before it is full if they find few locks.
const ROUNDS_MAX: usize = 4;

/// What one script found.
struct Portion {
    locks: Vec<HeldLockView>,
    /// The last lock it looked at.
    last: (u64, Bytes),
    /// There are more behind it.
    more: bool,
}

fn op((at, name): &(u64, Bytes), most: usize, prefix: &Bytes) -> Op {
    let args = vec![number(*at), name.clone(), number(most as u64), prefix.clone()];
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

/// The order of the list: which ends first.
fn place(lock: &HeldLockView) -> (u64, Bytes) {
    (lock.expires_at, lock.name.clone())
}

impl Fanout<'_> {
    pub(super) async fn locks(self, page: &Locks) -> Answer {
        let after = page.check()?.map(|cursor| (cursor.at, cursor.name));
        let mut after = Some(after.unwrap_or_default());
        let mut locks = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let left = page.limit - locks.len();
            let Some(from) = after.take_if(|_| left > 0) else { break };
            (after, locks) = self.locks_after(&from, left, &page.prefix, locks).await?;
        }
        let cursor = after.map(|(at, name)| LocksCursor { part: 0, at, name }.write());
        Ok(Reply::Locks(LocksPage { locks, cursor }))
    }

    /// Adds at most `most` locks to the list. The place is where to go on; `None` = that was all.
    async fn locks_after(
        self,
        from: &(u64, Bytes),
        most: usize,
        prefix: &Bytes,
        mut locks: Vec<HeldLockView>,
    ) -> Result<(Option<(u64, Bytes)>, Vec<HeldLockView>), Error> {
        let ask = |index| {
            let partition = self.dispatcher.lock_partition_at(index);
            let op = op(from, most.min(BATCH_JOBS_MAX), prefix);
            self.submit_op(&partition, Effect::Read, op)
        };
        let asked: Vec<_> = (0..LOCK_PARTITIONS).map(ask).collect();
        let (mut found, mut end) = (Vec::new(), None::<(u64, Bytes)>);
        for answer in asked {
            let portion = read(&mut Reader::new(&answer.await?.answer))?;
            found.extend(portion.locks);
            // Beyond the last lock that it looked at a partition may have more.
            let last = portion.more.then_some(portion.last);
            end = last.into_iter().chain(end).min();
        }
        found.retain(|lock| end.as_ref().is_none_or(|end| place(lock) <= *end));
        found.sort_by_cached_key(place);
        if found.len() > most {
            found.truncate(most);
            end = found.last().map(place);
        }
        locks.append(&mut found);
        Ok((end, locks))
    }
}
