//! Sessions: connections of this server whose leases end with them. Redis knows nothing of
//! sessions, so their leases are remembered here, and released when the session closes.

use std::collections::HashMap;
use std::rc::Rc;

use dormouse_core::job::{JobId, Token};
use dormouse_core::op::{LeasedJob, SessionId};

use crate::partition::waiter::Waiter;

/// With fewer leases a session is not searched for expired ones.
const PRUNE_MIN: usize = 64;

/// How long after its end a lease is forgotten. Nodes' clocks differ; to release a lease that has
/// ended does no harm.
const FORGET_AFTER_MS: u64 = 60_000;

#[derive(Default)]
pub(crate) struct Sessions {
    opened: u64,
    open: HashMap<SessionId, Session>,
    /// The session of each lease; exactly the leases of all sessions.
    owners: HashMap<JobId, SessionId>,
}

/// A lease of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLease {
    token: Token,
    /// By Redis' clock.
    expires_at: u64,
}

impl SessionLease {
    pub(crate) fn of(job: &LeasedJob) -> SessionLease {
        SessionLease { token: job.token, expires_at: job.expires_at }
    }
}

/// The leases and waiters that end with a session.
#[derive(Default)]
pub(crate) struct Session {
    leases: HashMap<JobId, SessionLease>,
    /// How many leases the last pruning kept.
    kept_last: usize,
    pub(crate) waiters: HashMap<u64, Rc<Waiter>>,
}

impl Session {
    pub(crate) fn tokens(&self) -> impl Iterator<Item = Token> {
        self.leases.values().map(|lease| lease.token)
    }

    /// Prunes only when the leases have doubled, so that the cost per lease is constant.
    fn prune_expired(&mut self, now_ms: u64, owners: &mut HashMap<JobId, SessionId>) {
        if self.leases.len() < PRUNE_MIN.max(2 * self.kept_last) {
            return;
        }
        self.leases.retain(|id, lease| {
            let kept = lease.expires_at.saturating_add(FORGET_AFTER_MS) > now_ms;
            if !kept {
                owners.remove(id);
            }
            kept
        });
        self.kept_last = self.leases.len();
    }
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
            self.owners.remove(id);
        }
        Some(closed)
    }

    pub(crate) fn is_open(&self, session: SessionId) -> bool {
        self.open.contains_key(&session)
    }

    /// Adds a lease. False = the session has closed meanwhile.
    pub(crate) fn add(&mut self, session: SessionId, lease: SessionLease, now_ms: u64) -> bool {
        if !self.open.contains_key(&session) {
            return false;
        }
        let id = lease.token.id;
        if let Some(other) = self.lease_of(id) {
            if other.token.fence > lease.token.fence {
                // It expired and was granted again before this reply arrived.
                return true;
            }
            self.drop_lease(other.token);
        }
        let Some(open) = self.open.get_mut(&session) else { return false };
        open.prune_expired(now_ms, &mut self.owners);
        open.leases.insert(id, lease);
        self.owners.insert(id, session);
        true
    }

    fn lease_of(&self, id: JobId) -> Option<SessionLease> {
        self.open.get(self.owners.get(&id)?)?.leases.get(&id).copied()
    }

    /// A lease was extended or shortened.
    pub(crate) fn set_expiry(&mut self, token: Token, expires_at: u64) {
        let Some(open) = self.owners.get(&token.id).and_then(|session| self.open.get_mut(session))
        else {
            return;
        };
        if let Some(lease) = open.leases.get_mut(&token.id)
            && lease.token == token
        {
            lease.expires_at = expires_at;
        }
    }

    /// A lease ended. The token of an older lease of the same job does not end this one.
    pub(crate) fn drop_lease(&mut self, token: Token) {
        let Some(session) = self.owners.get(&token.id) else { return };
        if let Some(open) = self.open.get_mut(session)
            && open.leases.get(&token.id).is_some_and(|lease| lease.token == token)
        {
            open.leases.remove(&token.id);
            self.owners.remove(&token.id);
        }
    }

    pub(crate) fn add_waiter(&mut self, session: SessionId, waiter: &Rc<Waiter>) {
        if let Some(open) = self.open.get_mut(&session) {
            open.waiters.insert(waiter.no, Rc::clone(waiter));
        }
    }

    pub(crate) fn remove_waiter(&mut self, session: SessionId, no: u64) {
        if let Some(open) = self.open.get_mut(&session) {
            open.waiters.remove(&no);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(id: u64, fence: u64, expires_at: u64) -> SessionLease {
        SessionLease { token: Token { id: JobId(id), fence }, expires_at }
    }

    fn ids(session: &Session) -> Vec<u64> {
        let mut ids: Vec<_> = session.tokens().map(|token| token.id.0).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn a_job_reserved_by_another_session_belongs_to_that_one() {
        let mut sessions = Sessions::default();
        let (one, two) = (sessions.open(), sessions.open());
        assert!(sessions.add(one, lease(7, 1, 10), 0));
        assert!(sessions.add(two, lease(7, 2, 20), 10));
        assert_eq!(ids(&sessions.close(one).expect("a session")), []);
        sessions.drop_lease(lease(7, 2, 20).token);
        assert_eq!(ids(&sessions.close(two).expect("a session")), [], "the lease was dropped");
    }

    #[test]
    fn an_older_lease_reported_late_does_not_replace_the_newer_one() {
        let mut sessions = Sessions::default();
        let (one, two) = (sessions.open(), sessions.open());
        assert!(sessions.add(two, lease(7, 2, 20), 10));
        assert!(sessions.add(one, lease(7, 1, 10), 10));
        assert_eq!(ids(&sessions.close(one).expect("a session")), []);
        assert_eq!(ids(&sessions.close(two).expect("a session")), [7]);
    }

    #[test]
    fn expired_leases_are_forgotten() {
        let mut sessions = Sessions::default();
        let session = sessions.open();
        for id in 0..10_000 {
            let now_ms = id * 1_000;
            assert!(sessions.add(session, lease(id, 1, now_ms + 1), now_ms));
            if id == 0 {
                sessions.set_expiry(lease(0, 1, 1).token, u64::MAX);
            }
        }
        assert!(sessions.owners.len() <= 4 * PRUNE_MIN, "{} are remembered", sessions.owners.len());
        let closed = ids(&sessions.close(session).expect("a session"));
        assert_eq!((closed.first(), closed.last()), (Some(&0), Some(&9_999)));
        assert!(sessions.owners.is_empty());
    }
}
