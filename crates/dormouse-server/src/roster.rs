//! Who is connected: a list of all connections, in the order in which they came.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::visitor::Visitor;

/// All connections. Clones are the same list.
#[derive(Clone, Default)]
pub(crate) struct Roster {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// The number of the last one.
    last: u64,
    visitors: BTreeMap<u64, Arc<Visitor>>,
}

/// A connection in the list; its drop takes it out.
pub(crate) struct Listed {
    roster: Roster,
    number: u64,
}

/// A page of connections.
pub(crate) struct RosterPage {
    pub(crate) visitors: Vec<(u64, Arc<Visitor>)>,
    /// The number of all connections.
    pub(crate) count: usize,
    /// There are more.
    pub(crate) more: bool,
}

impl Roster {
    /// Adds a connection.
    pub(crate) fn enter(&self, visitor: Arc<Visitor>) -> Listed {
        let mut inner = self.lock();
        inner.last += 1;
        let number = inner.last;
        inner.visitors.insert(number, visitor);
        drop(inner);
        Listed { roster: self.clone(), number }
    }

    /// The connections after the one of this number.
    pub(crate) fn page(&self, after: u64, limit: usize) -> RosterPage {
        let inner = self.lock();
        let mut rest = inner.visitors.range((Bound::Excluded(after), Bound::Unbounded));
        let page = rest.by_ref().take(limit).map(|(at, visitor)| (*at, Arc::clone(visitor)));
        let visitors: Vec<(u64, Arc<Visitor>)> = page.collect();
        let more = rest.next().is_some();
        RosterPage { visitors, count: inner.visitors.len(), more }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while it is held.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        // The visitor is dropped after the lock: it gives a place back.
        let left = self.roster.lock().visitors.remove(&self.number);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::ProtocolKind;
    use crate::visitor::Address;

    #[test]
    fn pages_have_those_who_are_there() {
        let roster = Roster::default();
        let visitor = || Arc::new(Visitor::new(Address::Local, ProtocolKind::Resp, None));
        let mut listed: Vec<Listed> = (0..5).map(|_| roster.enter(visitor())).collect();
        drop(listed.remove(1));
        let check = |after, limit, numbers: &[u64], more| {
            let page = roster.page(after, limit);
            let found: Vec<u64> = page.visitors.iter().map(|(number, _)| *number).collect();
            assert_eq!((found.as_slice(), page.more, page.count), (numbers, more, 4));
        };
        check(0, 2, &[1, 3], true);
        check(3, 2, &[4, 5], false);
        check(0, 4, &[1, 3, 4, 5], false);
        check(5, 4, &[], false);
        check(u64::MAX, 4, &[], false);
        drop(listed);
        assert_eq!(roster.page(0, 1).count, 0);
    }
}
