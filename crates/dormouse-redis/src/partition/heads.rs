//! What is known of the first jobs of a partition: never later than the truth, as far as this
//! server can know.

use std::collections::BTreeMap;

use dormouse_core::job::JobId;

use crate::codec::reserve::{Rank, Seen};

/// The first job of each priority, and when the first lease ends.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    /// `None` = nothing is known.
    by_priority: Option<BTreeMap<u32, (u64, JobId)>>,
    lease_end: Option<u64>,
    paused_until: u64,
}

impl Heads {
    /// A look told the truth about what it looked at, of these priorities that there are.
    pub(crate) fn learn(&mut self, seen: &Seen, priorities: &[u32]) {
        // Of those that it did not get to, nothing is known yet.
        let unknown = || priorities.iter().map(|&priority| (priority, (0, JobId(0)))).collect();
        let known = self.by_priority.get_or_insert_with(unknown);
        for (priority, head) in &seen.heads {
            match head {
                Some(head) => known.insert(*priority, *head),
                None => known.remove(priority),
            };
        }
        self.lease_end = seen.lease_end;
        self.paused_until = seen.paused_until;
    }

    /// A job came to rest here.
    pub(crate) fn lower(&mut self, priority: u32, due_at: u64, id: JobId) {
        if let Some(known) = &mut self.by_priority {
            let head = known.entry(priority).or_insert((due_at, id));
            *head = (*head).min((due_at, id));
        }
    }

    /// A lease ends here then.
    pub(crate) fn lower_end(&mut self, at_ms: u64) {
        self.lease_end = Some(self.lease_end.map_or(at_ms, |known| known.min(at_ms)));
    }

    /// Something else happened.
    pub(crate) fn forget(&mut self) {
        self.by_priority = None;
    }

    /// When something becomes visible, as far as is known.
    pub(crate) fn next(&self) -> Option<u64> {
        if self.paused_until > 0 {
            // Of what comes during a pause nothing is learnt.
            return Some(self.paused_until);
        }
        let Some(known) = &self.by_priority else { return Some(0) };
        let first = known.values().map(|&(due_at, _)| due_at).min();
        first.into_iter().chain(self.lease_end).min()
    }

    /// A bound for what reserve would give next: nothing comes before it. `None` = nothing is
    /// visible.
    pub(crate) fn first(&self, now_ms: u64) -> Option<Rank> {
        let Some(known) = &self.by_priority else { return Some((0, 0, JobId(0))) };
        if self.paused_until > now_ms {
            return None;
        }
        // A lease that ended may be of any priority.
        if self.lease_end.is_some_and(|at| at <= now_ms) {
            return Some((0, 0, JobId(0)));
        }
        let visible = known.iter().find(|(_, (due_at, _))| *due_at <= now_ms);
        visible.map(|(&priority, &(due_at, id))| (priority, due_at, id))
    }
}
