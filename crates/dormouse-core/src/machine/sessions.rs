//! Sessions: what ends with a connection or process.

use std::collections::BTreeSet;

use crate::Map;
use crate::job::JobId;
use crate::machine::waiters::WaiterNo;
use crate::op::SessionId;

/// What belongs to one session.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) leases: BTreeSet<JobId>,
    pub(crate) waiters: BTreeSet<WaiterNo>,
}

/// The sessions that are open.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: Map<SessionId, Session>,
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

    pub(crate) fn close(&mut self, session: SessionId) -> Option<Session> {
        self.open.remove(&session)
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
