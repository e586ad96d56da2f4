//! The journal: every change as a record, in batches, in segments that only grow.
//!
//! A segment is a file `journal-<number, 20 digits>.dmj` and nothing but a sequence of batches. A
//! batch is what the engine hands to the sync thread at once: a header of 72 bytes and its records.
//! All fixed numbers are little-endian.
//!
//! ```text
//!  0  4  magic, bytes 9d 44 4d 4a
//!  4  4  format, 1
//!  8  8  segment number
//! 16  8  offset of this header in the segment
//! 24  8  batch number
//! 32  8  newest batch known to be synced when this one was written
//! 40  8  steady_ms when it was written
//! 48  8  wall_ms when it was written
//! 56  8  bytes of records that follow the header
//! 64  4  CRC32C of the records
//! 68  4  CRC32C of bytes 0 to 67
//! ```
//!
//! Segment and offset stand in every header, so the content of a reused or misplaced file is never
//! taken for a batch. The header has its own checksum: what it says of earlier batches counts even
//! if its own records were torn. Magic, format and both checksums keep their places in every later
//! format, so that this version can tell a newer file from a damaged one.
//!
//! # Torn tail or corruption
//! Damage in batch k is what a power cut leaves, and all from k on never happened, **unless a later
//! header says that a batch >= k was synced**: then bytes that were safe are gone, and the start
//! stops with file and offset. A gap in the numbers is damage at the first missing one.
//!
//! A start never appends to an old segment. It syncs all it read, and the first batch of its new
//! segment begins with [`Boot`], which names the last good batch g it built on. Replay must arrive
//! there exactly at g; what follows g in older segments is ignored; the numbers go on at g + 1.

mod batch;
mod boot;
mod checkpoint;
mod header;
mod plan;
mod record;
mod replay;
mod segment;
mod verify;
mod window;
mod writer;

#[cfg(test)]
mod tests;

pub use batch::{BatchBuilder, SealedBatch};
pub use boot::Boot;
pub use checkpoint::{CheckpointHead, FrontierImage, RunUse};
pub use header::{BatchHeader, HEADER_BYTES};
pub use plan::{Plan, SegmentPrefix, TornBatch, plan, settle};
pub use record::Record;
pub use segment::{segment_name, segment_number, segments};
pub use verify::{JournalSummary, holds_changes, verify};
pub use writer::SegmentWriter;
