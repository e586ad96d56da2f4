//! What operators changed: the last changes, in memory only.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::{AUDIT_ENTRIES_MAX, AUDIT_TARGET_BYTES_MAX};
use crate::visitor::Address;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuditEntry {
    /// Ms since 1970.
    pub(crate) at: u64,
    /// The name of the token, if there is one.
    pub(crate) token: Option<Arc<str>>,
    pub(crate) peer: Address,
    /// The method and the template of the path.
    pub(crate) call: String,
    /// The path, cut if it is long.
    pub(crate) target: String,
    /// `None` = the client left before the answer: it may have happened.
    pub(crate) status: Option<u16>,
    /// The console sent it.
    pub(crate) ui: bool,
}

/// The last changes.
#[derive(Default)]
pub(crate) struct Audit {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    entries: VecDeque<AuditEntry>,
    /// The number of the last one; the first ever is 1.
    last: u64,
}

impl Audit {
    pub(crate) fn note(&self, mut entry: AuditEntry) {
        let mut end = AUDIT_TARGET_BYTES_MAX.min(entry.target.len());
        while !entry.target.is_char_boundary(end) {
            end -= 1;
        }
        entry.target.truncate(end);
        let mut kept = self.lock();
        kept.last += 1;
        kept.entries.push_back(entry);
        if kept.entries.len() > AUDIT_ENTRIES_MAX {
            kept.entries.pop_front();
        }
    }

    /// Entries before the one of this number, newest first, and whether there are more.
    pub(crate) fn page(&self, before: Option<u64>, limit: usize) -> (Vec<(u64, AuditEntry)>, bool) {
        let kept = self.lock();
        let newest = kept.entries.iter().rev().zip((1..=kept.last).rev());
        let mut older = newest.skip_while(|(_, at)| before.is_some_and(|before| *at >= before));
        let page = older.by_ref().take(limit).map(|(entry, at)| (at, entry.clone())).collect();
        let more = older.next().is_some();
        (page, more)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics while it is held.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_come_first_and_the_oldest_go() {
        let audit = Audit::default();
        let entry = |at| AuditEntry {
            at,
            token: None,
            peer: Address::Local,
            call: "POST /x".to_owned(),
            target: "é".repeat(AUDIT_TARGET_BYTES_MAX),
            status: Some(200),
            ui: false,
        };
        for at in 1..=AUDIT_ENTRIES_MAX as u64 + 5 {
            audit.note(entry(at));
        }
        let last = AUDIT_ENTRIES_MAX as u64 + 5;
        let (page, more) = audit.page(None, 2);
        assert_eq!(page.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [last, last - 1]);
        assert!(more && page.iter().all(|(number, entry)| *number == entry.at));
        assert!(page[0].1.target.len() <= AUDIT_TARGET_BYTES_MAX);
        let (page, more) = audit.page(Some(8), 10);
        assert_eq!(page.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [7, 6]);
        assert!(!more);
        assert_eq!(audit.page(Some(1), 10), (Vec::new(), false));
        assert_eq!(audit.page(None, 10_000).0.len(), AUDIT_ENTRIES_MAX);
    }
}
