//! Sessions: connections of this server whose leases end with them.

use std::collections::HashMap;
use std::rc::Rc;

use dormouse_core::job::{JobId, Token};
use dormouse_core::op::SessionId;

use crate::partition::demand::Demand;

/// The sessions that are open.
#[derive(Default)]
pub(crate) struct Sessions {
    opened: u64,
    open: HashMap<SessionId, Session>,
    /// Whose lease this is.
    of: HashMap<JobId, SessionId>,
}

/// What ends with a session.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) leases: HashMap<JobId, Token>,
    pub(crate) demands: HashMap<u64, Rc<Demand>>,
}

impl Sessions {
    pub(crate) fn open(&mut self) -> SessionId {
        self.opened += 1;
        let session = SessionId(self.opened);
        self.open.insert(session, Session::default());
        session
    }

    pub(crate) fn close(&mut self, session: SessionId) -> Option<Session> {
        let closed = self.open.remove(&session)?;
        for id in closed.leases.keys() {
            self.of.remove(id);
        }
        Some(closed)
    }

    pub(crate) fn is_open(&self, session: SessionId) -> bool {
        self.open.contains_key(&session)
    }

    /// A lease of this session began. False = the session has ended meanwhile.
    pub(crate) fn add(&mut self, session: SessionId, token: Token) -> bool {
        let Some(open) = self.open.get_mut(&session) else { return false };
        open.leases.insert(token.id, token);
        self.of.insert(token.id, session);
        true
    }

    /// A lease ended. A token of an older one of the same job says nothing about this one.
    pub(crate) fn drop_lease(&mut self, token: Token) {
        let Some(session) = self.of.get(&token.id) else { return };
        if let Some(open) = self.open.get_mut(session)
            && open.leases.get(&token.id) == Some(&token)
        {
            open.leases.remove(&token.id);
            self.of.remove(&token.id);
        }
    }

    pub(crate) fn add_demand(&mut self, session: SessionId, demand: &Rc<Demand>) {
        if let Some(open) = self.open.get_mut(&session) {
            open.demands.insert(demand.no, Rc::clone(demand));
        }
    }

    pub(crate) fn drop_demand(&mut self, session: SessionId, no: u64) {
        if let Some(open) = self.open.get_mut(&session) {
            open.demands.remove(&no);
        }
    }
}
