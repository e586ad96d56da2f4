//! Locks: who waits stands in line at this server, and asks again when the lock may be free.

use std::rc::Rc;
use std::time::Duration;

use crate::limits::LOCK_PARTITIONS;
use bytes::Bytes;
use dormouse_core::backend::{Answer, Ticket};
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::limits::{LOCKS_MAX, WAITERS_MAX};
use dormouse_core::op::{Lock, RenewLock, Unlock};
use dormouse_core::refusal::{lock_free, lock_held, too_many_locks, too_many_wait};

use super::ask_other;
use crate::codec::lock::{self, Came};
use crate::dispatch::Desk;
use crate::partition::waiter::Demand;
use crate::partition::{BatchNo, Effect, Partition};
use crate::wire::{Op, Reader};

/// A lock that is waited for is asked for at least this often.
const RECHECK: Duration = Duration::from_secs(5);

async fn ask(partition: &Partition, batch: BatchNo, op: Op) -> Result<Came, Error> {
    let raw = ask_other(partition, batch, Effect::Change, op).await?;
    lock::read(&mut Reader::new(&raw.answer))
}

pub(super) async fn lock(desk: &Rc<Desk>, batch: BatchNo, ticket: Ticket, lock: Lock) -> Answer {
    let (ttl_ms, wait_ms) = lock.check()?;
    let partition = desk.lock_partition(&lock.name);
    let most = (LOCKS_MAX as u64).div_ceil(u64::from(LOCK_PARTITIONS));
    let try_once = |waits| {
        let op = lock::op(&lock.name, &lock.owner, ttl_ms, most, waits);
        ask(&partition, batch, op)
    };
    let stands_behind = desk.lock_lines.borrow().contains_key(&lock.name);
    let came = if stands_behind {
        // Somebody here waits for it: only its owner may pass.
        let owner = ask_owner(&partition, batch, &lock).await?;
        if owner {
            try_once(false).await?
        } else {
            Came::Held { owner: Bytes::new(), expires_at: 0 }
        }
    } else {
        try_once(wait_ms > 0).await?
    };
    match came {
        Came::Held { owner, .. } if wait_ms == 0 => {
            let owner =
                if owner.is_empty() { holder(&partition, batch, &lock).await? } else { owner };
            return Err(lock_held(&lock.name, &owner));
        }
        Came::Held { .. } => {}
        came => return reply(came, &lock.name),
    }
    if desk.waiting.borrow().len() >= WAITERS_MAX {
        return Err(too_many_wait());
    }
    let no = desk.next_demand();
    let waiting = Rc::new(Demand::new(no, batch, 0, None, true));
    desk.waiting.borrow_mut().insert(ticket, Rc::clone(&waiting));
    desk.lock_lines.borrow_mut().entry(lock.name.clone()).or_default().insert(no);
    let _leave = Leave { desk, ticket, name: &lock.name, no };
    let wait = Wait { desk, batch, partition: &partition, lock: &lock, ttl_ms, most, no };
    let end = async {
        tokio::select! {
            _ = waiting.ended() => {}
            () = desk.shared.clock.pass(wait_ms) => {}
        }
    };
    if let Some(came) = wait.granted(end).await? {
        return reply(came, &lock.name);
    }
    // One last time: it may have become free this moment.
    if !waiting.is_over()
        && wait.is_first()
        && let came @ Came::Done(_) = try_once(false).await?
    {
        return reply(came, &lock.name);
    }
    let owner = holder(&partition, batch, &lock).await?;
    Err(lock_held(&lock.name, &owner))
}

/// Whether the one who asks holds the lock already.
async fn ask_owner(partition: &Partition, batch: BatchNo, lock: &Lock) -> Result<bool, Error> {
    Ok(holder(partition, batch, lock).await? == lock.owner)
}

/// Who holds a lock; nobody is nobody's name.
async fn holder(partition: &Partition, batch: BatchNo, lock: &Lock) -> Result<Bytes, Error> {
    let op = lock::op_holder(&lock.name);
    let raw = ask_other(partition, batch, Effect::Look, op).await?;
    Ok(lock::read_holder(&Reader::new(&raw.answer)))
}

/// A lock request that waits.
struct Wait<'a> {
    desk: &'a Rc<Desk>,
    batch: BatchNo,
    partition: &'a Rc<Partition>,
    lock: &'a Lock,
    ttl_ms: u64,
    most: u64,
    no: u64,
}

impl Wait<'_> {
    /// Ends when the lock is had, or with nothing at the end. Only the first in line asks, and
    /// waits for what it asked: an answer that nobody hears would be a lock that nobody has.
    async fn granted(&self, end: impl Future<Output = ()>) -> Result<Option<Came>, Error> {
        tokio::pin!(end);
        tokio::select! {
            biased;
            () = self.partition.listen() => {}
            () = &mut end => return Ok(None),
        }
        loop {
            let changed = self.partition.changed.notified();
            tokio::pin!(changed);
            // Whatever happens from here on is noticed.
            changed.as_mut().enable();
            let mut ends_at = None;
            if self.is_first() {
                let op = lock::op(&self.lock.name, &self.lock.owner, self.ttl_ms, self.most, true);
                match ask(self.partition, self.batch, op).await? {
                    Came::Held { expires_at, .. } => ends_at = Some(expires_at),
                    came => return Ok(Some(came)),
                }
            }
            tokio::select! {
                () = &mut end => return Ok(None),
                () = changed => {}
                () = self.desk.shared.clock.until(ends_at.unwrap_or(0)), if ends_at.is_some() => {}
                () = tokio::time::sleep(RECHECK) => {}
            }
        }
    }

    fn is_first(&self) -> bool {
        let lines = self.desk.lock_lines.borrow();
        lines.get(&self.lock.name).and_then(|line| line.first()) == Some(&self.no)
    }
}

/// Whatever ends the wait, the next in line gets its turn.
struct Leave<'a> {
    desk: &'a Rc<Desk>,
    ticket: Ticket,
    name: &'a Bytes,
    no: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.desk.waiting.borrow_mut().remove(&self.ticket);
        let mut lines = self.desk.lock_lines.borrow_mut();
        if let Some(line) = lines.get_mut(self.name) {
            line.remove(&self.no);
            if line.is_empty() {
                lines.remove(self.name);
            }
        }
        drop(lines);
        self.desk.lock_partition(self.name).changed.notify_waiters();
    }
}

pub(super) async fn renew(desk: &Rc<Desk>, batch: BatchNo, renew: &RenewLock) -> Answer {
    let ttl_ms = renew.check()?;
    let partition = desk.lock_partition(&renew.name);
    let op = lock::op_renew(&renew.name, &renew.owner, ttl_ms);
    reply(ask(&partition, batch, op).await?, &renew.name)
}

pub(super) async fn unlock(desk: &Rc<Desk>, batch: BatchNo, unlock: &Unlock) -> Answer {
    unlock.check()?;
    let partition = desk.lock_partition(&unlock.name);
    let op = lock::op_unlock(&unlock.name, &unlock.owner);
    let came = ask(&partition, batch, op).await?;
    partition.changed.notify_waiters();
    match came {
        Came::Done(left) => Ok(Reply::Unlocked(left.depth == 0)),
        came => reply(came, &unlock.name),
    }
}

fn reply(came: Came, name: &[u8]) -> Answer {
    match came {
        Came::Done(reply) => Ok(Reply::Lock(reply)),
        Came::Free => Err(lock_free(name)),
        Came::Held { owner, .. } => Err(lock_held(name, &owner)),
        Came::TooMany => Err(too_many_locks()),
    }
}
