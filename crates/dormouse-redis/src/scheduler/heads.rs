//! When the first jobs of a partition become visible, as far as this server knows.
//!
//! A poll reports the first job of every priority it looked at. Puts of this server lower those
//! times; what cannot be followed (a nack, a change by id) invalidates them, and so makes the next
//! poll due at once. Changes by other servers arrive as wakeups. So the times here are never later
//! than the truth, except for a wakeup that is lost or on its way; rechecks cover that.

use std::collections::BTreeMap;

use dormouse_core::job::JobId;

/// The order in which visible jobs are reserved: priority, due time, id.
pub(crate) type Rank = (u32, u64, JobId);

/// What a poll saw of the jobs that are left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadsReport {
    /// No job is given before this instant, unless a lease ends or the topic is set or resumed: it
    /// is paused, or its limits hold all jobs. 0 = neither.
    pub(crate) closed_until: u64,
    /// No lease expires before this instant; `None` = there is none.
    pub(crate) lease_end: Option<u64>,
    /// The first job left in each priority that was read; `None` = it is empty.
    pub(crate) heads: Vec<(u32, Option<(u64, JobId)>)>,
    /// The script had more to look at than one does: another poll goes on.
    pub(crate) is_partial: bool,
}

impl HeadsReport {
    /// The job that would be reserved next; `None` = the poll found no other visible job.
    pub(crate) fn next(&self, now_ms: u64) -> Option<Rank> {
        if self.closed_until > now_ms {
            return None;
        }
        if self.is_partial {
            return Some((0, 0, JobId(0)));
        }
        self.heads.iter().find_map(|&(priority, head)| {
            let (due_at, id) = head.filter(|&(due_at, _)| due_at <= now_ms)?;
            Some((priority, due_at, id))
        })
    }
}

/// The first job of each priority, and when the first lease ends.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    /// `None` = unknown, so a poll is due.
    by_priority: Option<BTreeMap<u32, (u64, JobId)>>,
    lease_end: Option<u64>,
    closed_until: u64,
}

impl Heads {
    /// Takes over what a poll saw. `priorities` are those of the partition.
    pub(crate) fn update(&mut self, report: &HeadsReport, priorities: &[u32]) {
        // Priorities that the poll did not reach may have a visible job.
        let unknown = || priorities.iter().map(|&priority| (priority, (0, JobId(0)))).collect();
        let known = self.by_priority.get_or_insert_with(unknown);
        for (priority, head) in &report.heads {
            match head {
                Some(head) => known.insert(*priority, *head),
                None => known.remove(priority),
            };
        }
        self.lease_end = report.lease_end;
        self.closed_until = report.closed_until;
    }

    /// A job of this priority was put or moved.
    pub(crate) fn lower(&mut self, priority: u32, due_at: u64, id: JobId) {
        if let Some(known) = &mut self.by_priority {
            let head = known.entry(priority).or_insert((due_at, id));
            *head = (*head).min((due_at, id));
        }
    }

    /// A lease ends at this instant.
    pub(crate) fn lower_lease_end(&mut self, at_ms: u64) {
        self.lease_end = Some(self.lease_end.map_or(at_ms, |known| known.min(at_ms)));
    }

    /// Jobs changed in a way that the reply does not describe.
    pub(crate) fn invalidate(&mut self) {
        self.by_priority = None;
        self.open();
    }

    /// What closed the topic may have ended.
    pub(crate) fn open(&mut self) {
        self.closed_until = 0;
    }

    /// When a job becomes visible, as far as is known. 0 = unknown.
    pub(crate) fn next_visible_at(&self) -> Option<u64> {
        if self.closed_until > 0 {
            // A poll of a closed topic reports no heads, so its end is the next time to poll.
            return Some(self.closed_until);
        }
        let Some(known) = &self.by_priority else {
            return Some(0);
        };
        let first = known.values().map(|&(due_at, _)| due_at).min();
        first.into_iter().chain(self.lease_end).min()
    }

    /// A lower bound of the rank of the job that a reserve would get next. `None` = no job is
    /// visible.
    pub(crate) fn first_visible(&self, now_ms: u64) -> Option<Rank> {
        let Some(known) = &self.by_priority else {
            return Some((0, 0, JobId(0)));
        };
        if self.closed_until > now_ms {
            return None;
        }
        // The job of an ended lease may have any priority.
        if self.lease_end.is_some_and(|at| at <= now_ms) {
            return Some((0, 0, JobId(0)));
        }
        let visible = known.iter().find(|(_, (due_at, _))| *due_at <= now_ms);
        visible.map(|(&priority, &(due_at, id))| (priority, due_at, id))
    }
}
