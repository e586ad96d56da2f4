//! Memory of memtables that are gone, for the next one.
//!
//! Memory that the system hands out is touched for the first time page by page, each at the price
//! of a fault. A bulk load fills a memtable several times a second, and a tenth of its time would
//! go there.

use std::sync::{Arc, Mutex, PoisonError};

use dormouse_core::Map;

use super::KeyedId;
use super::entries::EntryList;
use super::ids::IdEntry;

/// Empty buffers that have been used.
#[derive(Debug, Default)]
pub(super) struct Spare {
    pub(super) chunks: Vec<Vec<u8>>,
    pub(super) lists: Vec<EntryList>,
    pub(super) ids: Vec<IdEntry>,
    pub(super) keys: Map<u64, KeyedId>,
}

/// Shared by the memtables of a store.
#[derive(Clone, Debug, Default)]
pub(super) struct SpareStore(Arc<Mutex<Spare>>);

impl SpareStore {
    /// Takes everything but what exceeds these numbers of chunks and lists.
    pub(super) fn take(&self, chunks_max: usize, lists_max: usize) -> Spare {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = std::mem::take(&mut *spare);
        drop(spare);
        taken.chunks.truncate(chunks_max);
        taken.lists.truncate(lists_max);
        taken
    }

    /// Keeps the buffers of a memtable, which need not be empty.
    pub(super) fn give(&self, mut given: Spare) {
        given.chunks.iter_mut().for_each(Vec::clear);
        given.lists.iter_mut().for_each(Vec::clear);
        given.ids.clear();
        given.keys.clear();
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spare.chunks.append(&mut given.chunks);
        spare.lists.append(&mut given.lists);
        if spare.ids.capacity() < given.ids.capacity() {
            std::mem::swap(&mut spare.ids, &mut given.ids);
        }
        if spare.keys.capacity() < given.keys.capacity() {
            std::mem::swap(&mut spare.keys, &mut given.keys);
        }
        // What is left of it is dropped without the lock.
        drop(spare);
    }
}
