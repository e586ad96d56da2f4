//! What is of no use any more, but takes a while to go: files, memtables, runs.

use std::sync::Arc;

use crate::memtable::Memtable;
use crate::run::Run;

/// Things for a task to remove and drop.
#[derive(Default)]
pub(super) struct Leftovers {
    /// Files that no durable manifest names any more.
    pub(super) names: Vec<String>,
    /// Memtables that are runs now.
    pub(super) tables: Vec<Arc<Memtable>>,
    /// Runs that were merged or consumed.
    pub(super) runs: Vec<Arc<Run>>,
}

impl Leftovers {
    /// All of it, if there is anything.
    pub(super) fn take(&mut self) -> Option<Leftovers> {
        let Leftovers { names, tables, runs } = self;
        let is_empty = names.is_empty() && tables.is_empty() && runs.is_empty();
        (!is_empty).then(|| std::mem::take(self))
    }
}
