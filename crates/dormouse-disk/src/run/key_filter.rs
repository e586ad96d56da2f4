//! One filter over the keys of many runs.
//!
//! A put with a key asks every run whether it has the key, and mostly none has. Their own filters
//! are far apart in memory, so with fifty runs that takes longer than the put itself. This filter
//! answers for all runs that were added to it at once; only if it says "perhaps" are they asked one
//! by one. So it may be wrong more often than theirs, and small. Keys that have gone stay in it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::damage::Damage;

use super::filter::{FilterLine, LINE_BITS, line_of};
use super::reader::Run;

/// Bits per key: about one wrong "perhaps" in 40.
const BITS_PER_KEY: u64 = 8;

/// A filter of a fixed size. One thread adds to it while another asks it; a run counts as added
/// once the first has told the second.
#[derive(Debug)]
pub struct KeyFilter {
    lines: Vec<AtomicLine>,
    keys_max: u64,
    keys: AtomicU64,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct AtomicLine([AtomicU64; 8]);

impl KeyFilter {
    /// An empty filter for this many keys.
    pub fn new(keys_max: u64) -> KeyFilter {
        let lines = keys_max.saturating_mul(BITS_PER_KEY).div_ceil(LINE_BITS).max(1);
        let lines = (0..lines).map(|_| AtomicLine::default()).collect();
        KeyFilter { lines, keys_max, keys: AtomicU64::new(0) }
    }

    /// Whether this many keys more can be added.
    pub fn has_room(&self, keys: u64) -> bool {
        self.keys().saturating_add(keys) <= self.keys_max
    }

    /// Keys that were added.
    pub fn keys(&self) -> u64 {
        self.keys.load(Relaxed)
    }

    /// Adds all keys of a run.
    pub fn add(&self, run: &Run) -> Result<(), Damage> {
        let mut keys = run.keys.scan();
        while let Some(record) = keys.next()? {
            let hash = record.hash();
            let line = &self.lines[self.line_of(hash)];
            for (word, bit) in FilterLine::bits(hash) {
                line.0[word].fetch_or(bit, Relaxed);
            }
        }
        self.keys.fetch_add(run.meta().keyed, Relaxed);
        Ok(())
    }

    /// Fetches what `may_have` reads into the cache; the result has no meaning.
    pub fn touch(&self, hash: u64) -> u64 {
        self.lines[self.line_of(hash)].0[0].load(Relaxed)
    }

    /// Whether a run that was added may have a key of this hash; `false` is certain.
    pub fn may_have(&self, hash: u64) -> bool {
        let line = &self.lines[self.line_of(hash)];
        FilterLine::bits(hash).all(|(word, bit)| line.0[word].load(Relaxed) & bit != 0)
    }

    fn line_of(&self, hash: u64) -> usize {
        // Below the number of lines, which is in memory.
        line_of(hash, self.lines.len() as u64) as usize
    }
}
