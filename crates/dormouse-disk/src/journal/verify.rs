//! Reads a whole journal for nothing but to see that it can be read.

use super::checkpoint::CheckpointHead;
use super::plan::{TornBatch, plan};
use super::record::Record;
use super::window::{Batch, Window};
use crate::codec::Reader;
use crate::damage::Damage;
use crate::disk::Disk;

/// The contents of a journal without damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalSummary {
    /// Segments read.
    pub segments: u64,
    /// Good batches.
    pub batches: u64,
    /// Their records.
    pub records: u64,
    /// Bytes of good batches.
    pub bytes: u64,
    /// The head of the checkpoint it begins with.
    pub head: Option<CheckpointHead>,
    /// Remains of a power cut, or of a write under way, behind the last good batch.
    pub torn: Option<TornBatch>,
}

/// Checks every batch and record from `first_segment` on. Of a store that is running, the end as
/// it was when its segment was opened.
pub fn verify(disk: &dyn Disk, first_segment: u64) -> Result<JournalSummary, Damage> {
    let plan = plan(disk, first_segment)?;
    let (mut records, mut head) = (0, None);
    plan.replay(disk, &mut |_, record| {
        if let (0, Record::Checkpoint(first)) = (records, record) {
            head = Some(first);
        }
        records += 1;
        Ok(())
    })?;
    Ok(JournalSummary {
        segments: plan.segments_read.len() as u64,
        batches: plan.stretches.iter().map(|one| one.last_batch - one.first_batch + 1).sum(),
        records,
        head,
        bytes: plan.stretches.iter().map(|one| one.bytes).sum(),
        torn: plan.torn,
    })
}

/// Whether a segment holds anything that somebody may have been answered for: more than the head
/// of the checkpoint that a first start writes before its manifest.
pub fn holds_changes(disk: &dyn Disk, segment: u64) -> Result<bool, Damage> {
    let mut window = Window::open(disk, segment)?;
    let mut from = 0;
    while let Some(header) = window.next_header(from)? {
        from = header.offset + 1;
        if let Batch::Good(header) = window.batch(header.offset)? {
            if has_changes(window.records(&header)?) {
                return Ok(true);
            }
            from = header.end();
        }
    }
    Ok(false)
}

fn has_changes(records: &[u8]) -> bool {
    let mut reader = Reader::new(records);
    while !reader.is_empty() {
        match Record::decode(&mut reader) {
            // A record that cannot be read may be a change.
            None | Some(Record::Fact(_) | Record::Boot(_) | Record::Seal) => return true,
            Some(_) => {}
        }
    }
    false
}
