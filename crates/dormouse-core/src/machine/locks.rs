//! The table of locks that are held.

use std::collections::BTreeSet;
use std::ops::Bound;

use bytes::Bytes;

use super::{LockTerms, Machine, Origin, Output, WaitKind, When};
use crate::backend::Ticket;
use crate::command::Reply;
use crate::error::Error;
use crate::fact::Fact;
use crate::holder::HolderId;
use crate::image::LockImage;
use crate::limits::{LOCKS_MAX, TICK_MAX};
use crate::op::LockReply;
use crate::refusal::{lock_held, locks_of_token_used, too_many_locks};
use crate::share;
use crate::snapshot_map::SnapshotMap;
use crate::time::{Clock, Now};
use crate::timeline::Timeline;

/// A lock that is held.
#[derive(Clone, Debug)]
pub(crate) struct HeldLock {
    pub(crate) owner: Bytes,
    pub(crate) fence: u64,
    pub(crate) depth: u32,
    pub(crate) ttl_ms: u64,
    /// Steady; `u64::MAX` until it is said.
    pub(crate) expires_at: u64,
    /// For whom it counts; `None` = for nobody.
    pub(crate) holder: Option<HolderId>,
}

impl HeldLock {
    /// The lock as a checkpoint has it.
    pub(crate) fn image(&self, name: &Bytes) -> LockImage {
        LockImage {
            name: name.clone(),
            owner: self.owner.clone(),
            fence: self.fence,
            depth: self.depth,
            ttl_ms: self.ttl_ms,
        }
    }
}

/// All locks that are held.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    held: SnapshotMap<Bytes, HeldLock>,
    expiries: BTreeSet<(u64, Bytes)>,
}

impl Locks {
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn get(&self, name: &Bytes) -> Option<&HeldLock> {
        self.held.get(name)
    }

    /// All locks as they are now.
    pub(crate) fn snapshot(&mut self) -> SnapshotMap<Bytes, HeldLock> {
        self.held.snapshot()
    }

    /// All names, in order.
    pub(crate) fn names(&self) -> Vec<Bytes> {
        let mut names: Vec<_> = self.held.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// The locks by the steady instant they run out, then by name: those after this one.
    pub(crate) fn after(&self, last: Option<(u64, Bytes)>) -> impl Iterator<Item = &(u64, Bytes)> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.expiries.range((from, Bound::Unbounded))
    }

    pub(crate) fn next_expiry(&self) -> Option<u64> {
        self.expiries.first().map(|(at, _)| *at)
    }

    /// Applies: a lock is held so from now on.
    pub(crate) fn hold(
        &mut self,
        name: &Bytes,
        owner: &Bytes,
        fence: u64,
        depth: u32,
        ttl_ms: u64,
    ) {
        let before = self.held.get(name);
        let expires_at = before.map_or(u64::MAX, |lock| lock.expires_at);
        let holder = before.and_then(|lock| lock.holder);
        let lock = HeldLock { owner: owner.clone(), fence, depth, ttl_ms, expires_at, holder };
        self.held.insert(name.clone(), lock);
    }

    /// Applies: a lock is free. Gives for whom it counted.
    pub(crate) fn free(&mut self, name: &Bytes) -> Option<HolderId> {
        let lock = self.held.remove(name)?;
        self.expiries.remove(&(lock.expires_at, name.clone()));
        lock.holder
    }

    /// Says for whom a lock counts, unless it does for somebody already; tells whether it did.
    fn claim(&mut self, name: &Bytes, holder: HolderId) -> bool {
        let Some(lock) = self.held.get_mut(name).filter(|lock| lock.holder.is_none()) else {
            return false;
        };
        lock.holder = Some(holder);
        true
    }

    /// Says until when a lock is held.
    pub(crate) fn set_expiry(&mut self, name: &Bytes, expires_at: u64) {
        let Some(lock) = self.held.get_mut(name) else { return };
        self.expiries.remove(&(lock.expires_at, name.clone()));
        lock.expires_at = expires_at;
        self.expiries.insert((expires_at, name.clone()));
    }
}

impl<T: Timeline> Machine<T> {
    /// Frees the locks that ran out; the next in line get them.
    pub(crate) fn expire_locks(&mut self, now: Now, budget: &mut usize, out: &mut Output) {
        while let Some((at, name)) = self.locks.expiries.first()
            && *at <= now.steady_ms
            && *budget > 0
        {
            let name = name.clone();
            *budget = budget.saturating_sub(self.free_lock(now, name, out));
        }
    }

    /// Frees a lock if it ran out, also while very many others have still to be freed.
    pub(crate) fn expire_lock(&mut self, now: Now, name: &Bytes, out: &mut Output) {
        if self.locks.get(name).is_some_and(|lock| lock.expires_at <= now.steady_ms) {
            self.free_lock(now, name.clone(), out);
        }
    }

    /// Frees a lock; the first waiting request gets it whose holder has room for a lock. Gives what
    /// that costs a tick. If very many have none, the next gets it all the same: others must not
    /// wait for so many answers.
    pub(crate) fn free_lock(&mut self, now: Now, name: Bytes, out: &mut Output) -> usize {
        self.commit(Fact::LockFreed { name: name.clone() }, Origin::Live, out);
        for refused in 0..=TICK_MAX {
            let next = self.waiters.locks.get(&name).and_then(|waiters| waiters.first().copied());
            let unparked = next.and_then(|next| self.unpark(next));
            let Some((ticket, WaitKind::Lock(terms))) = unparked else { return 1 + refused };
            match self.check_lock_room(terms.holder) {
                Err(error) if refused < TICK_MAX => {
                    out.answers.push((ticket, Err(error), When::Durable));
                }
                _ => {
                    self.grant_lock(now, ticket, terms, out);
                    return 1 + refused;
                }
            }
        }
        1 + TICK_MAX
    }

    /// Whether this holder may take one lock more.
    pub(crate) fn check_lock_room(&self, holder: Option<HolderId>) -> Result<(), Error> {
        if self.locks.len() >= LOCKS_MAX {
            return Err(too_many_locks());
        }
        let (held, all) = (self.holders.of(holder).locks, self.locks.len() as u64);
        if share::exceeds(held + 1, all + 1, LOCKS_MAX as u64) {
            return Err(locks_of_token_used(held));
        }
        Ok(())
    }

    /// Gives a free lock away.
    pub(crate) fn grant_lock(
        &mut self,
        now: Now,
        ticket: Ticket,
        terms: LockTerms,
        out: &mut Output,
    ) {
        let (fence, expires_at) = (self.next_fence(), now.after(terms.ttl_ms));
        let LockTerms { name, owner, ttl_ms, holder } = terms;
        let lock = HeldLock { owner, fence, depth: 1, ttl_ms, expires_at, holder };
        let reply = self.hold_lock(now, &name, lock, out);
        out.answers.push((ticket, Ok(Reply::Lock(reply)), When::Durable));
    }

    /// Decides that a lock is held so from now on.
    pub(crate) fn hold_lock(
        &mut self,
        now: Now,
        name: &Bytes,
        lock: HeldLock,
        out: &mut Output,
    ) -> LockReply {
        let HeldLock { owner, fence, depth, ttl_ms, expires_at, holder } = lock;
        let fact = Fact::LockHeld { name: name.clone(), owner, fence, depth, ttl_ms };
        self.commit(fact, Origin::Live, out);
        self.locks.set_expiry(name, expires_at);
        if let Some(holder) = holder
            && self.locks.claim(name, holder)
        {
            self.holders.add_lock(holder);
        }
        LockReply { fence, expires_at: now.to_wall(Clock::Steady, expires_at), depth }
    }

    /// The answer to a request about a lock that another owner holds.
    pub(crate) fn locked(&self, name: &Bytes) -> Error {
        let owner = self.locks.get(name).map_or_else(Bytes::new, |lock| lock.owner.clone());
        lock_held(name, &owner)
    }
}
