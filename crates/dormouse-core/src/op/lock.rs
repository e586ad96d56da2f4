//! Locks: named, exclusive, re-entrant for the same owner, expiring, each grant with a growing
//! fencing number.

use bytes::Bytes;

use crate::backend::Ticket;
use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::holder::HolderId;
use crate::limits::{TTL_MS_MAX, TTR_MS_MIN, WAIT_MS_MAX};
use crate::machine::{HeldLock, LockTerms, Machine, Output, Rule, WaitKind, When};
use crate::op::check;
use crate::refusal::{lock_free, lock_passed_on, no_lock_to_break, too_many_wait};
use crate::time::Now;
use crate::timeline::Timeline;

/// Take a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its name.
    pub name: Bytes,
    /// The owner; the same owner may take it again.
    pub owner: Bytes,
    /// How long it lasts unless renewed.
    pub ttl_ms: i64,
    /// How long to wait for it; 0 = answer `conflict` at once.
    pub wait_ms: i64,
}

/// Prolong a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewLock {
    /// Its name.
    pub name: Bytes,
    /// The owner.
    pub owner: Bytes,
    /// How long from now; without it, as it was granted.
    pub ttl_ms: Option<i64>,
}

/// Give a lock back, once per time it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlock {
    /// Its name.
    pub name: Bytes,
    /// The owner.
    pub owner: Bytes,
}

/// Free a lock, whoever holds it: an operator's way out. The first who waits gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakLock {
    /// Its name.
    pub name: Bytes,
    /// Only this grant of it: another may have got it since the operator looked.
    pub fence: Option<u64>,
}

impl Lock {
    /// Checks all limits; gives ttl and wait.
    pub fn check(&self) -> Result<(u64, u64), Error> {
        check::lock_names(&self.name, &self.owner)?;
        let ttl_ms = check::span("ttl", self.ttl_ms, TTR_MS_MIN, TTL_MS_MAX)?;
        Ok((ttl_ms, check::span("wait", self.wait_ms, 0, WAIT_MS_MAX)?))
    }
}

impl RenewLock {
    /// Checks all limits; gives the ttl.
    pub fn check(&self) -> Result<Option<u64>, Error> {
        check::lock_names(&self.name, &self.owner)?;
        self.ttl_ms.map(|ms| check::span("ttl", ms, TTR_MS_MIN, TTL_MS_MAX)).transpose()
    }
}

impl Unlock {
    /// Checks all limits.
    pub fn check(&self) -> Result<(), Error> {
        check::lock_names(&self.name, &self.owner)
    }
}

impl BreakLock {
    /// Checks all limits.
    pub fn check(&self) -> Result<(), Error> {
        check::lock_name(&self.name)
    }
}

/// A lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockReply {
    /// Grows with every grant of any lock; pass it to the resource that the lock protects.
    pub fence: u64,
    /// When it runs out, wall ms.
    pub expires_at: u64,
    /// How often the owner must give it back.
    pub depth: u32,
}

operation! {
    Lock => LockReply,
        request => Command::Lock(request), Reply::Lock(reply) => Ok(reply);
    RenewLock => LockReply,
        request => Command::RenewLock(request), Reply::Lock(reply) => Ok(reply);
    BreakLock => (),
        request => Command::BreakLock(request), Reply::Done => Ok(());
    Unlock => bool,
        request => Command::Unlock(request), Reply::Unlocked(reply) => Ok(reply);
}

impl<T: Timeline> Machine<T> {
    /// Answers at once, or lets the request wait.
    pub(crate) fn lock(
        &mut self,
        now: Now,
        ticket: Ticket,
        holder: Option<HolderId>,
        lock: Lock,
        out: &mut Output,
    ) {
        if let Some(answer) = self.try_lock(now, ticket, holder, lock, out).transpose() {
            out.answers.push((ticket, answer.map(Reply::Lock), When::Durable));
        }
    }

    fn try_lock(
        &mut self,
        now: Now,
        ticket: Ticket,
        holder: Option<HolderId>,
        lock: Lock,
        out: &mut Output,
    ) -> Result<Option<LockReply>, Error> {
        let (ttl_ms, wait_ms) = lock.check()?;
        let Lock { name, owner, .. } = lock;
        self.expire_lock(now, &name, out);
        let Some(held) = self.locks.get(&name) else {
            self.check_lock_room(holder)?;
            self.grant_lock(now, ticket, LockTerms { name, owner, ttl_ms, holder }, out);
            return Ok(None);
        };
        if held.owner == owner {
            let mut again = held.clone();
            again.depth = again.depth.saturating_add(1);
            again.ttl_ms = ttl_ms;
            again.holder = again.holder.or(holder);
            // Taking it again must not shorten the outer lock.
            again.expires_at = again.expires_at.max(now.after(ttl_ms));
            return Ok(Some(self.hold_lock(now, &name, again, out)));
        }
        if wait_ms == 0 {
            return Err(self.locked(&name));
        }
        if self.waiters.is_full() {
            return Err(too_many_wait());
        }
        let terms = LockTerms { name, owner, ttl_ms, holder };
        self.waiters.park(ticket, now.after(wait_ms), WaitKind::Lock(terms));
        Ok(None)
    }

    pub(crate) fn renew_lock(
        &mut self,
        now: Now,
        holder: Option<HolderId>,
        renew: &RenewLock,
        out: &mut Output,
    ) -> Rule<Reply> {
        let ttl_ms = renew.check()?;
        self.expire_lock(now, &renew.name, out);
        let mut lock = self.own_lock(&renew.name, &renew.owner)?;
        lock.ttl_ms = ttl_ms.unwrap_or(lock.ttl_ms);
        lock.expires_at = now.after(lock.ttl_ms);
        lock.holder = lock.holder.or(holder);
        Ok(Reply::Lock(self.hold_lock(now, &renew.name, lock, out)))
    }

    pub(crate) fn unlock(&mut self, now: Now, unlock: &Unlock, out: &mut Output) -> Rule<Reply> {
        unlock.check()?;
        self.expire_lock(now, &unlock.name, out);
        let mut lock = self.own_lock(&unlock.name, &unlock.owner)?;
        if lock.depth > 1 {
            lock.depth -= 1;
            self.hold_lock(now, &unlock.name, lock, out);
            return Ok(Reply::Unlocked(false));
        }
        self.free_lock(now, unlock.name.clone(), out);
        Ok(Reply::Unlocked(true))
    }

    pub(crate) fn break_lock(
        &mut self,
        now: Now,
        broken: BreakLock,
        out: &mut Output,
    ) -> Rule<Reply> {
        broken.check()?;
        let BreakLock { name, fence } = broken;
        self.expire_lock(now, &name, out);
        match self.locks.get(&name).map(|held| held.fence) {
            None => Err(no_lock_to_break(&name).into()),
            Some(held) if fence.is_some_and(|fence| fence != held) => {
                Err(lock_passed_on(&name, held).into())
            }
            Some(_) => {
                self.free_lock(now, name, out);
                Ok(Reply::Done)
            }
        }
    }

    /// The lock as this owner holds it.
    fn own_lock(&self, name: &Bytes, owner: &Bytes) -> Result<HeldLock, Error> {
        match self.locks.get(name) {
            None => Err(lock_free(name)),
            Some(held) if held.owner != *owner => Err(self.locked(name)),
            Some(held) => Ok(held.clone()),
        }
    }
}
