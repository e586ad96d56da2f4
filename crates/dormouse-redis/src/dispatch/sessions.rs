//! Sessions: connections of this server whose leases end with them.

use std::collections::HashMap;
use std::rc::Rc;

use dormouse_core::job::{JobId, Token};
use dormouse_core::op::{LeasedJob, SessionId};

use crate::partition::waiter::Demand;

/// So many leases are remembered before anybody asks which of them are over.
const LEASES_FEW: usize = 64;

/// A lease is forgotten only so long after its end: nodes' clocks differ, and the script that is
/// asked to give it back knows better.
const FORGET_AFTER_MS: u64 = 60_000;

/// The sessions that are open.
#[derive(Default)]
pub(crate) struct Sessions {
    opened: u64,
    open: HashMap<SessionId, Session>,
    /// Whose lease this is: exactly the leases of all sessions are here.
    of: HashMap<JobId, SessionId>,
}

/// A lease of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    token: Token,
    /// By Redis' clock.
    expires_at: u64,
}

impl Held {
    pub(crate) fn of(job: &LeasedJob) -> Held {
        Held { token: job.token, expires_at: job.expires_at }
    }
}

/// What ends with a session.
#[derive(Default)]
pub(crate) struct Session {
    leases: HashMap<JobId, Held>,
    /// How many leases were left when those that were over were dropped last.
    left: usize,
    pub(crate) demands: HashMap<u64, Rc<Demand>>,
}

impl Session {
    pub(crate) fn tokens(&self) -> impl Iterator<Item = Token> {
        self.leases.values().map(|held| held.token)
    }

    /// It is looked at only when they have doubled, so that a lease costs no more with many.
    fn drop_over(&mut self, now_ms: u64, of: &mut HashMap<JobId, SessionId>) {
        if self.leases.len() < LEASES_FEW.max(2 * self.left) {
            return;
        }
        self.leases.retain(|id, held| {
            let kept = held.expires_at.saturating_add(FORGET_AFTER_MS) > now_ms;
            if !kept {
                of.remove(id);
            }
            kept
        });
        self.left = self.leases.len();
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
            self.of.remove(id);
        }
        Some(closed)
    }

    pub(crate) fn is_open(&self, session: SessionId) -> bool {
        self.open.contains_key(&session)
    }

    /// A lease of this session began. False = the session has ended meanwhile.
    pub(crate) fn add(&mut self, session: SessionId, held: Held, now_ms: u64) -> bool {
        if !self.open.contains_key(&session) {
            return false;
        }
        let id = held.token.id;
        if let Some(other) = self.held(id) {
            if other.token.fence > held.token.fence {
                // It ran out and was taken again before anybody heard of it.
                return true;
            }
            self.drop_lease(other.token);
        }
        let Some(open) = self.open.get_mut(&session) else { return false };
        open.drop_over(now_ms, &mut self.of);
        open.leases.insert(id, held);
        self.of.insert(id, session);
        true
    }

    fn held(&self, id: JobId) -> Option<Held> {
        self.open.get(self.of.get(&id)?)?.leases.get(&id).copied()
    }

    /// A lease ends later or sooner than was said.
    pub(crate) fn prolong(&mut self, token: Token, expires_at: u64) {
        let Some(open) = self.of.get(&token.id).and_then(|session| self.open.get_mut(session))
        else {
            return;
        };
        if let Some(held) = open.leases.get_mut(&token.id)
            && held.token == token
        {
            held.expires_at = expires_at;
        }
    }

    /// A lease ended. A token of an older one of the same job says nothing about this one.
    pub(crate) fn drop_lease(&mut self, token: Token) {
        let Some(session) = self.of.get(&token.id) else { return };
        if let Some(open) = self.open.get_mut(session)
            && open.leases.get(&token.id).is_some_and(|held| held.token == token)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn held(id: u64, fence: u64, expires_at: u64) -> Held {
        Held { token: Token { id: JobId(id), fence }, expires_at }
    }

    fn ids(session: &Session) -> Vec<u64> {
        let mut ids: Vec<_> = session.tokens().map(|token| token.id.0).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn a_job_that_another_session_took_is_that_ones() {
        let mut sessions = Sessions::default();
        let (one, two) = (sessions.open(), sessions.open());
        assert!(sessions.add(one, held(7, 1, 10), 0));
        assert!(sessions.add(two, held(7, 2, 20), 10));
        assert_eq!(ids(&sessions.close(one).expect("a session")), []);
        sessions.drop_lease(held(7, 2, 20).token);
        assert_eq!(ids(&sessions.close(two).expect("a session")), [], "it was found and dropped");
    }

    #[test]
    fn a_lease_heard_of_too_late_takes_nothing_from_the_newer_one() {
        let mut sessions = Sessions::default();
        let (one, two) = (sessions.open(), sessions.open());
        assert!(sessions.add(two, held(7, 2, 20), 10));
        assert!(sessions.add(one, held(7, 1, 10), 10));
        assert_eq!(ids(&sessions.close(one).expect("a session")), []);
        assert_eq!(ids(&sessions.close(two).expect("a session")), [7]);
    }

    #[test]
    fn leases_that_are_over_are_dropped() {
        let mut sessions = Sessions::default();
        let session = sessions.open();
        for id in 0..10_000 {
            let now_ms = id * 1_000;
            assert!(sessions.add(session, held(id, 1, now_ms + 1), now_ms));
            if id == 0 {
                sessions.prolong(held(0, 1, 1).token, u64::MAX);
            }
        }
        assert!(sessions.of.len() <= 4 * LEASES_FEW, "{} are remembered", sessions.of.len());
        let closed = ids(&sessions.close(session).expect("a session"));
        assert_eq!((closed.first(), closed.last()), (Some(&0), Some(&9_999)));
        assert!(sessions.of.is_empty());
    }
}
