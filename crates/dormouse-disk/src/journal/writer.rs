//! The sync thread's side: batches go to the end of the newest segment.

use std::io;
use std::sync::Arc;

use super::batch::SealedBatch;
use super::header::{BatchHeader, HEADER_BYTES};
use super::segment::segment_name;
use crate::damage::Damage;
use crate::disk::{Disk, File};

/// Several batches up to this size together are written by one call.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// Appends to one segment.
///
/// The previous segment is synced before the next one is created: else a batch could be durable
/// whose predecessor is not, and the claim in its header would be false.
pub struct SegmentWriter {
    segment: u64,
    name: String,
    file: Arc<dyn File>,
    offset: u64,
    /// The length of the file: behind the last batch there may be zeros.
    len: u64,
    group: Vec<u8>,
    /// After a failed write or sync nobody knows what the file holds: no call succeeds any more.
    failed: bool,
}

impl SegmentWriter {
    /// Makes a new segment; its name is durable when this returns.
    pub fn create(disk: &dyn Disk, segment: u64) -> Result<SegmentWriter, Damage> {
        let name = segment_name(segment);
        let failed = |source| Damage::io(&name, source);
        let file = disk.create(&name).map_err(failed)?;
        disk.sync_dir().map_err(failed)?;
        let group = Vec::new();
        Ok(SegmentWriter { segment, name, file, offset: 0, len: 0, group, failed: false })
    }

    /// The segment's number.
    pub fn segment(&self) -> u64 {
        self.segment
    }

    /// The segment's file, to be synced by another thread.
    pub(crate) fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// Writes a batch; it is durable after the next [`SegmentWriter::sync`]. `synced_no` is the
    /// newest batch whose sync has returned: a greater number would make a power cut look like
    /// corruption.
    pub fn write(
        &mut self,
        batch: &mut SealedBatch,
        synced_no: u64,
        steady_ms: u64,
        wall_ms: u64,
    ) -> Result<(), Damage> {
        self.write_all(std::slice::from_mut(batch), synced_no, steady_ms, wall_ms)
    }

    /// Writes batches in order, small ones together.
    pub fn write_all(
        &mut self,
        batches: &mut [SealedBatch],
        synced_no: u64,
        steady_ms: u64,
        wall_ms: u64,
    ) -> Result<(), Damage> {
        let several = batches.len() > 1;
        for batch in batches {
            let offset = self.offset + self.group.len() as u64;
            let header = BatchHeader {
                segment: self.segment,
                offset,
                number: batch.number,
                synced_no,
                steady_ms,
                wall_ms,
                records_bytes: (batch.bytes.len() - HEADER_BYTES) as u64,
                records_crc: crc32c::crc32c(&batch.bytes[HEADER_BYTES..]),
            };
            batch.bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
            if several && self.group.len() + batch.len() <= GROUP_BYTES_MAX {
                self.group.extend_from_slice(&batch.bytes);
            } else {
                self.write_group()?;
                self.write_bytes(&batch.bytes)?;
            }
        }
        self.write_group()
    }

    /// Writes this many zeros behind the last batch, unless there are some left.
    ///
    /// A sync that makes the file longer has the new length and new blocks to write as well; one of
    /// bytes that the file had before takes half as long.
    pub fn write_zeros(&mut self, bytes: usize) -> Result<(), Damage> {
        if self.offset < self.len {
            return Ok(());
        }
        let end = self.offset;
        self.write_bytes(&vec![0; bytes])?;
        self.offset = end;
        Ok(())
    }

    /// Makes all writes durable.
    pub fn sync(&mut self) -> Result<(), Damage> {
        self.check_usable()?;
        let done = self.file.sync();
        self.failed = done.is_err();
        done.map_err(|source| Damage::io(&self.name, source))
    }

    fn write_group(&mut self) -> Result<(), Damage> {
        let mut group = std::mem::take(&mut self.group);
        if !group.is_empty() {
            self.write_bytes(&group)?;
            group.clear();
        }
        self.group = group;
        Ok(())
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), Damage> {
        self.check_usable()?;
        if let Err(source) = self.file.write_at(self.offset, bytes) {
            self.failed = true;
            return Err(Damage::io(&self.name, source));
        }
        self.offset += bytes.len() as u64;
        self.len = self.len.max(self.offset);
        Ok(())
    }

    fn check_usable(&self) -> Result<(), Damage> {
        if self.failed {
            let source = io::Error::other("an earlier write or sync of this segment failed");
            return Err(Damage::io(&self.name, source));
        }
        Ok(())
    }
}
