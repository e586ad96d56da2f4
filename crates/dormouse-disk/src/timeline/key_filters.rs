//! The filters over the keys of all runs: which runs they cover, and when they are begun anew.
//!
//! Invariant: every key of a run that counts as covered is in one of the filters. A run from a
//! flush or a start is not covered until a task has added its keys; a merge's output is if all its
//! inputs are, because it has no other keys. Keys are never taken out, so once most of them have
//! gone, the filters are dropped and all runs are covered afresh.

use std::sync::Arc;

use super::sources::{OpenRun, Sources};
use crate::run::{KeyFilter, Run};

/// Filters, each about twice as large as the one before.
#[derive(Debug, Default)]
pub(crate) struct KeyFilters {
    filters: Vec<Arc<KeyFilter>>,
    /// Every run is covered.
    covers_all: bool,
    /// The runs have not changed since they were last looked at.
    is_settled: bool,
}

/// Whether the keys of a run are in the filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// They are, or there are none.
    Covered,
    /// Not yet.
    Open,
    /// They cannot be read.
    Unreadable,
}

/// Where a run's keys are to be added.
pub(crate) enum FilterRoom {
    /// Here.
    Filter(Arc<KeyFilter>),
    /// In a new filter for this many keys.
    New(u64),
}

impl FilterRoom {
    /// The filter, made if need be. That takes milliseconds.
    pub(crate) fn filter(self) -> Arc<KeyFilter> {
        match self {
            FilterRoom::Filter(filter) => filter,
            FilterRoom::New(keys_max) => Arc::new(KeyFilter::new(keys_max)),
        }
    }
}

impl KeyFilters {
    /// Whether every run is covered and none has a key of this hash.
    pub(super) fn exclude_all(&self, hash: u64) -> bool {
        self.covers_all && self.exclude(hash)
    }

    /// Whether no run that is covered has a key of this hash.
    pub(super) fn exclude(&self, hash: u64) -> bool {
        std::hint::black_box(self.filters.iter().fold(0, |sum, filter| sum ^ filter.touch(hash)));
        !self.filters.iter().any(|filter| filter.may_have(hash))
    }

    fn keys(&self) -> u64 {
        self.filters.iter().map(|filter| filter.keys()).sum()
    }
}

impl Coverage {
    /// Of a run that has just been opened.
    pub(super) fn of(run: &Run) -> Coverage {
        if run.meta().keyed == 0 { Coverage::Covered } else { Coverage::Open }
    }
}

impl Sources {
    /// Notes whether every run is covered; to be called after the runs have changed.
    pub(crate) fn note_covered(&mut self) {
        self.key_filters.covers_all = self.runs.iter().all(OpenRun::is_covered);
        self.key_filters.is_settled = false;
    }

    /// The next run whose keys are to be added, and where. Filters are for `keys_min` at least.
    pub(crate) fn uncovered_run(&mut self, keys_min: u64) -> Option<(Arc<Run>, FilterRoom)> {
        if self.key_filters.is_settled {
            return None;
        }
        let keys = |open: &OpenRun| open.run.meta().keyed;
        let live: u64 = self.runs.iter().map(keys).sum();
        if self.key_filters.keys() > 2 * live + keys_min {
            self.key_filters.filters.clear();
            self.runs.iter_mut().for_each(|open| open.coverage = Coverage::of(&open.run));
            self.note_covered();
        }
        let Some(open) = self.runs.iter().find(|open| open.coverage == Coverage::Open) else {
            self.key_filters.is_settled = true;
            return None;
        };
        let room = match self.key_filters.filters.last() {
            Some(last) if last.has_room(keys(open)) => FilterRoom::Filter(Arc::clone(last)),
            _ => FilterRoom::New(live.max(keys_min)),
        };
        Some((Arc::clone(&open.run), room))
    }

    /// The keys of a run are in this filter; without one they could not be read.
    pub(crate) fn cover(&mut self, no: u64, filter: Option<Arc<KeyFilter>>) {
        let coverage = if filter.is_some() { Coverage::Covered } else { Coverage::Unreadable };
        let filters = &mut self.key_filters.filters;
        let is_new = |filter: &Arc<KeyFilter>| !filters.iter().any(|it| Arc::ptr_eq(it, filter));
        let filter = filter.filter(is_new);
        filters.extend(filter);
        for open in self.runs.iter_mut().filter(|open| open.no() == no) {
            open.coverage = coverage;
        }
        self.note_covered();
    }
}
