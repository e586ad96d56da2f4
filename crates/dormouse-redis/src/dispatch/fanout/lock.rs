//! Locks. Blocking requests for a lock queue at this server; only the first of a queue asks Redis
//! for the lock, when it may have become free: on a message of the partition's channel, at the end
//! of the holder's ttl, and every `RECHECK`.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::limits::LOCKS_MAX;
use dormouse_core::op::{BreakLock, Lock, LockReply, RenewLock, Unlock};
use dormouse_core::refusal::{
    lock_free, lock_held, lock_passed_on, no_lock_to_break, too_many_locks,
};

use super::Fanout;
use crate::dispatch::{Dispatcher, Wait};
use crate::limits::LOCK_PARTITIONS;
use crate::partition::Partition;
use crate::partition::waiter::Waiter;
use crate::scheduler::NewWaiter;
use crate::wire::{Op, Reader, codes, flag, malformed, number, optional};

/// The result of a lock, renew or unlock.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LockStatus {
    /// The lock as it is now; after an unlock, depth 0 means that it is free.
    Done(LockReply),
    /// Nobody holds it, so it can be neither renewed nor unlocked.
    Free,
    /// Another owner holds it, or another grant of it.
    Held { owner: Bytes, fence: u64, expires_at: u64 },
    /// The limit of locks held is reached.
    TooMany,
}

/// At most `most` locks may be held in this partition. `waits`: the caller will wait if another
/// owner holds the lock, and must be woken.
fn op_lock(name: &Bytes, owner: &Bytes, ttl_ms: u64, most: u64, waits: bool) -> Op {
    let args = vec![name.clone(), owner.clone(), number(ttl_ms), number(most), flag(waits)];
    Op::new("lock", args)
}

/// Without `ttl_ms` the lock keeps the ttl it was granted with.
fn op_renew(name: &Bytes, owner: &Bytes, ttl_ms: Option<u64>) -> Op {
    Op::new("renew", vec![name.clone(), owner.clone(), optional(ttl_ms)])
}

fn op_unlock(name: &Bytes, owner: &Bytes) -> Op {
    Op::new("unlock", vec![name.clone(), owner.clone()])
}

fn op_break(broken: &BreakLock) -> Op {
    Op::new("break_lock", vec![broken.name.clone(), optional(broken.fence)])
}

/// Decodes the reply to lock, renew, unlock and break.
fn read_status(reply: &mut Reader<'_>) -> Result<LockStatus, Error> {
    let (code, fence) = (reply.u8()?, reply.u64()?);
    let (expires_at, depth) = (reply.u48()?, reply.u32()?);
    let owner = Bytes::copy_from_slice(reply.short_bytes()?);
    Ok(match code {
        codes::DONE => LockStatus::Done(LockReply { fence, expires_at, depth }),
        codes::GONE => LockStatus::Free,
        codes::LOST => LockStatus::Held { owner, fence, expires_at },
        codes::TOO_MANY => LockStatus::TooMany,
        _ => return Err(malformed("unknown result of a lock")),
    })
}

fn op_holder(name: &Bytes) -> Op {
    Op::new("holder", vec![name.clone()])
}

/// The owner; empty = the lock is free.
fn read_holder(reply: &mut Reader<'_>) -> Result<Bytes, Error> {
    Ok(Bytes::copy_from_slice(reply.rest()))
}

pub(super) fn op_count() -> Op {
    Op::new("locks", Vec::new())
}

/// The first of a queue asks for the lock at least this often.
const RECHECK: Duration = Duration::from_secs(5);

impl Fanout<'_> {
    /// Runs an operation on a lock. `done` says what was changed if it is done.
    async fn ask_lock(
        self,
        partition: &Partition,
        op: Op,
        done: &str,
    ) -> Result<LockStatus, Error> {
        let (status, confirmed) = self.ask_change(partition, op, read_status).await?;
        if let (LockStatus::Done(lock), false) = (&status, confirmed) {
            let done = format!("the lock was {done} (fence {})", lock.fence);
            return Err(self.dispatcher.shared.unconfirmed(&done, None));
        }
        Ok(status)
    }

    pub(super) async fn lock(self, wait: Option<Rc<Wait>>, lock: Lock) -> Answer {
        let (ttl_ms, _) = lock.check()?;
        let dispatcher = self.dispatcher;
        let partition = &dispatcher.lock_partition(&lock.name);
        let pending = PendingLock { fanout: self, partition, lock: &lock, ttl_ms };
        let has_queue = dispatcher.lock_queues.borrow().contains_key(&lock.name);
        let status = if !has_queue {
            pending.attempt(wait.is_some()).await?
        } else if pending.holder().await? == lock.owner {
            // Others wait for it here; only its holder may pass them, to lock it once more.
            pending.attempt(false).await?
        } else {
            LockStatus::Held { owner: Bytes::new(), fence: 0, expires_at: 0 }
        };
        let LockStatus::Held { owner, .. } = status else { return reply(status, &lock.name) };
        let Some(wait) = wait else {
            let owner = if owner.is_empty() { pending.holder().await? } else { owner };
            return Err(lock_held(&lock.name, &owner));
        };
        let no = dispatcher.next_waiter_no();
        // It is not parked: the queue of the lock decides whose turn it is.
        let new = NewWaiter { max: 0, ttr_ms: None, submission: None, is_blocking: true };
        let waiting = Rc::new(Waiter::new(&dispatcher.shared, no, new));
        wait.begin(&waiting)?;
        dispatcher.lock_queues.borrow_mut().entry(lock.name.clone()).or_default().insert(no);
        let _guard = WaitGuard { dispatcher, name: &lock.name, no };
        let end = async {
            tokio::select! {
                _ = waiting.finished() => {}
                () = wait.over() => {}
            }
        };
        if let Some(status) = pending.granted(no, end).await? {
            return reply(status, &lock.name);
        }
        // Once more at the end of the wait: it may have become free this moment.
        if !waiting.is_done()
            && pending.is_first(no)
            && let status @ LockStatus::Done(_) = pending.attempt(false).await?
        {
            return reply(status, &lock.name);
        }
        Err(lock_held(&lock.name, &pending.holder().await?))
    }

    pub(super) async fn renew_lock(self, renew: &RenewLock) -> Answer {
        let ttl_ms = renew.check()?;
        let partition = self.dispatcher.lock_partition(&renew.name);
        let op = op_renew(&renew.name, &renew.owner, ttl_ms);
        reply(self.ask_lock(&partition, op, "renewed").await?, &renew.name)
    }

    pub(super) async fn unlock(self, unlock: &Unlock) -> Answer {
        unlock.check()?;
        let partition = self.dispatcher.lock_partition(&unlock.name);
        let op = op_unlock(&unlock.name, &unlock.owner);
        let status = self.ask_lock(&partition, op, "unlocked").await;
        partition.changed.notify_waiters();
        match status? {
            LockStatus::Done(left) => Ok(Reply::Unlocked(left.depth == 0)),
            status => reply(status, &unlock.name),
        }
    }
}

impl Fanout<'_> {
    pub(super) async fn break_lock(self, broken: &BreakLock) -> Answer {
        broken.check()?;
        let partition = self.dispatcher.lock_partition(&broken.name);
        let status = self.ask_lock(&partition, op_break(broken), "broken").await;
        partition.changed.notify_waiters();
        match status? {
            LockStatus::Done(_) => Ok(Reply::Done),
            LockStatus::Free => Err(no_lock_to_break(&broken.name)),
            LockStatus::Held { fence, .. } => Err(lock_passed_on(&broken.name, fence)),
            LockStatus::TooMany => Err(too_many_locks()),
        }
    }
}

/// A request for a lock that is not yet answered.
struct PendingLock<'a> {
    fanout: Fanout<'a>,
    partition: &'a Rc<Partition>,
    lock: &'a Lock,
    ttl_ms: u64,
}

impl PendingLock<'_> {
    /// Asks for the lock. `waits`: the partition must tell when it becomes free.
    async fn attempt(&self, waits: bool) -> Result<LockStatus, Error> {
        let most = (LOCKS_MAX as u64).div_ceil(u64::from(LOCK_PARTITIONS));
        let op = op_lock(&self.lock.name, &self.lock.owner, self.ttl_ms, most, waits);
        self.fanout.ask_lock(self.partition, op, "granted").await
    }

    /// The holder of the lock; empty = it is free.
    async fn holder(&self) -> Result<Bytes, Error> {
        let (op, read) = (op_holder(&self.lock.name), read_holder);
        self.fanout.ask(self.partition, op, read).await
    }

    /// Returns when the lock is granted, or `None` at `end`. A request under way is awaited also
    /// then: dropping its reply could leave a lock that no caller knows of.
    async fn granted(
        &self,
        no: u64,
        end: impl Future<Output = ()>,
    ) -> Result<Option<LockStatus>, Error> {
        let clock = &self.fanout.dispatcher.shared.clock;
        tokio::pin!(end);
        tokio::select! {
            biased;
            () = &mut end => return Ok(None),
            () = self.partition.subscribed() => {}
        }
        loop {
            let changed = self.partition.changed.notified();
            tokio::pin!(changed);
            // Before the request, so that no change in between is missed.
            changed.as_mut().enable();
            let mut ends_at = None;
            if self.is_first(no) {
                match self.attempt(true).await? {
                    LockStatus::Held { expires_at, .. } => ends_at = Some(expires_at),
                    status => return Ok(Some(status)),
                }
            }
            tokio::select! {
                () = &mut end => return Ok(None),
                () = changed => {}
                () = clock.sleep_until(ends_at.unwrap_or(0)), if ends_at.is_some() => {}
                () = tokio::time::sleep(RECHECK) => {}
            }
        }
    }

    fn is_first(&self, no: u64) -> bool {
        let queues = self.fanout.dispatcher.lock_queues.borrow();
        queues.get(&self.lock.name).and_then(|queue| queue.first()) == Some(&no)
    }
}

/// Leaves the queue however the wait ends, and lets the next one try.
struct WaitGuard<'a> {
    dispatcher: &'a Rc<Dispatcher>,
    name: &'a Bytes,
    no: u64,
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let mut queues = self.dispatcher.lock_queues.borrow_mut();
        if let Some(queue) = queues.get_mut(self.name) {
            queue.remove(&self.no);
            if queue.is_empty() {
                queues.remove(self.name);
            }
        }
        drop(queues);
        self.dispatcher.lock_partition(self.name).changed.notify_waiters();
    }
}

fn reply(status: LockStatus, name: &[u8]) -> Answer {
    match status {
        LockStatus::Done(reply) => Ok(Reply::Lock(reply)),
        LockStatus::Free => Err(lock_free(name)),
        LockStatus::Held { owner, .. } => Err(lock_held(name, &owner)),
        LockStatus::TooMany => Err(too_many_locks()),
    }
}
