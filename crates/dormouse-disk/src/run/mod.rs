//! A run: an immutable file of entries sorted by place, written once by a flush or a merge, then
//! only read.
//!
//! The layout of the file is in format.rs; [`Run`] reads it. A *lane* is one (topic, class):
//! reading always happens within a lane, from a bound (due_at, id) on.
//!
//! In memory an open run costs its fences (one key per 4 KiB of index) and its key filter (16 bits
//! per entry with a key); everything else stays in the file until it is asked for.

mod block;
mod cache;
mod file;
mod filter;
mod format;
mod key_filter;
mod merge;
mod page;
mod reader;
mod record;
mod sample;
mod spill;
mod stream;
mod table;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use dormouse_core::place::Place;
use dormouse_core::topic::TopicNo;
use xxhash_rust::xxh3::xxh3_64_with_seed;

pub use block::Block;
pub use cache::BlockCache;
pub use key_filter::KeyFilter;
pub use merge::{UnreadFrom, merge};
pub use reader::Run;
pub use sample::{IdSample, IdSamples};
pub use writer::RunWriter;

/// Figures of a run that are known without reading its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunMeta {
    /// The run's number, never given again.
    pub no: u64,
    /// Its position among the runs: higher is newer.
    pub age: u64,
    /// Entries, tombstones included.
    pub entries: u64,
    /// Entries without a job.
    pub tombstones: u64,
    /// Entries whose job or hold has a key.
    pub keyed: u64,
    /// Pairs of topic and class.
    pub lanes: u64,
    /// The sum of all weights.
    pub weight: i64,
    /// The smallest id; `u64::MAX` in an empty run.
    pub min_id: u64,
    /// The largest id; 0 in an empty run.
    pub max_id: u64,
    /// The file's length.
    pub bytes: u64,
    /// Ids of some entries; `None` in a run of the first format.
    pub samples: Option<IdSamples>,
}

/// Where an entry is in its run. Within a run locations sort as places do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Loc {
    /// The data block, counted from 0.
    pub block: u32,
    /// The entry in it, counted from 0.
    pub index: u16,
}

/// One entry as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where the job rests.
    pub place: Place,
    /// Arrivals less departures at this place.
    pub weight: i32,
    /// The encoded job; `None` is a tombstone. A slice of the cached block: keeping it keeps
    /// the whole block, so copy what must stay.
    pub payload: Option<Bytes>,
}

/// An entry without its payload and weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHead {
    /// Where it is in its run.
    pub loc: Loc,
    /// Where the job rests.
    pub place: Place,
    /// It is no tombstone.
    pub is_job: bool,
    /// Of its payload.
    pub bytes: usize,
}

/// An odd number whose multiples are spread evenly over 64 bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number a key is indexed by. Its lowest bit is always 0: the index keeps the hold flag there.
pub fn key_hash(topic: TopicNo, key: &[u8]) -> u64 {
    // XXH3 subtracts the seed from constants and XORs them with a short key. Neighbouring topics
    // would give neighbouring keys the same hash, were their seeds not far apart.
    let seed = u64::from(topic.0).wrapping_mul(GOLDEN);
    xxh3_64_with_seed(key, seed) & !1
}
