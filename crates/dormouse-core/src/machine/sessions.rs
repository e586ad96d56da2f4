//! Sessions: leases that end with a connection or process.

use std::collections::{BTreeSet, VecDeque};

use crate::Map;
use crate::job::JobId;
use crate::machine::waiters::WaiterNo;
use crate::op::SessionId;

/// The leases of one session.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) leases: BTreeSet<JobId>,
    pub(crate) waiters: BTreeSet<WaiterNo>,
}

/// A session that has ended, with waits to be ended and leases to be given back.
#[derive(Debug)]
struct Closed {
    session: SessionId,
    closed_at: u64,
    waiters: BTreeSet<WaiterNo>,
    leases: BTreeSet<JobId>,
}

/// What a session that has ended leaves behind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Orphan {
    /// A request that waits, unless it was answered since.
    Waiter(WaiterNo),
    Lease(OrphanLease),
}

/// A lease whose session has ended, unless it ended before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrphanLease {
    pub(crate) id: JobId,
    pub(crate) session: SessionId,
    /// Steady.
    pub(crate) closed_at: u64,
}

/// The open sessions, and the remaining leases of closed ones.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: Map<SessionId, Session>,
    closed: VecDeque<Closed>,
    opened: u64,
}

impl Sessions {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn open(&mut self) -> SessionId {
        self.opened += 1;
        let session = SessionId(self.opened);
        self.open.insert(session, Session::default());
        session
    }

    /// Its waiters and leases are orphans now. Tells whether it was open.
    pub(crate) fn close(&mut self, session: SessionId, closed_at: u64) -> bool {
        let Some(Session { leases, waiters }) = self.open.remove(&session) else { return false };
        self.closed.push_back(Closed { session, closed_at, waiters, leases });
        true
    }

    /// Of the session that ended first, its waiters first; it is no orphan any more.
    pub(crate) fn next_orphan(&mut self) -> Option<Orphan> {
        loop {
            let &mut Closed { session, closed_at, ref mut waiters, ref mut leases } =
                self.closed.front_mut()?;
            if let Some(waiter) = waiters.pop_first() {
                return Some(Orphan::Waiter(waiter));
            }
            if let Some(id) = leases.pop_first() {
                return Some(Orphan::Lease(OrphanLease { id, session, closed_at }));
            }
            self.closed.pop_front();
        }
    }

    pub(crate) fn is_open(&self, session: SessionId) -> bool {
        self.open.contains_key(&session)
    }

    pub(crate) fn add_lease(&mut self, session: SessionId, id: JobId) {
        if let Some(session) = self.open.get_mut(&session) {
            session.leases.insert(id);
        }
    }

    pub(crate) fn drop_lease(&mut self, session: SessionId, id: JobId) {
        if let Some(session) = self.open.get_mut(&session) {
            session.leases.remove(&id);
        }
    }

    pub(crate) fn add_waiter(&mut self, session: SessionId, waiter: WaiterNo) {
        if let Some(session) = self.open.get_mut(&session) {
            session.waiters.insert(waiter);
        }
    }

    pub(crate) fn drop_waiter(&mut self, session: SessionId, waiter: WaiterNo) {
        if let Some(session) = self.open.get_mut(&session) {
            session.waiters.remove(&waiter);
        }
    }
}
