//! The end of the journal: writes sealed batches in order, and syncs them.

use std::sync::Arc;

use super::meters::DiskMeters;
use crate::clock::Stopwatch;
use crate::damage::Damage;
use crate::disk::{Disk, File};
use crate::journal::SegmentWriter;
use crate::store::SegmentBatch;

/// Zeros written behind the batches at once.
const ZEROS_BYTES: usize = 256 << 10;
/// Batches of this size are not worth it: their bytes would be written twice.
const LARGE_BYTES: usize = 64 << 10;

pub(super) struct BatchWriter {
    disk: Arc<dyn Disk>,
    writer: SegmentWriter,
    /// The last batch written, and the last one known to be synced.
    written: u64,
    synced: u64,
    meters: Arc<DiskMeters>,
}

impl BatchWriter {
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        writer: SegmentWriter,
        synced: u64,
        meters: Arc<DiskMeters>,
    ) -> BatchWriter {
        BatchWriter { disk, writer, written: synced, synced, meters }
    }

    /// Whether this batch is the first of its segment: writing it syncs the segment before.
    pub(super) fn begins_segment(&self, sealed: &SegmentBatch) -> bool {
        sealed.segment != self.writer.segment()
    }

    /// Writes the next batch.
    pub(super) fn write(&mut self, sealed: &mut SegmentBatch) -> Result<(), Damage> {
        if self.begins_segment(sealed) {
            // A checkpoint must not become durable before what it builds on.
            self.sync()?;
            self.writer = SegmentWriter::create(self.disk.as_ref(), sealed.segment)?;
        }
        let now = sealed.now;
        self.writer.write(&mut sealed.batch, self.synced, now.steady_ms, now.wall_ms)?;
        self.written = sealed.batch.number;
        self.meters.note_batch(&sealed.batch);
        Ok(())
    }

    /// Syncs everything that is written, and makes the next syncs quick.
    pub(super) fn sync_often(&mut self, batch_bytes: usize) -> Result<(), Damage> {
        if batch_bytes < LARGE_BYTES && self.synced < self.written {
            self.writer.write_zeros(ZEROS_BYTES)?;
        }
        self.sync()
    }

    /// Syncs everything that is written.
    pub(super) fn sync(&mut self) -> Result<(), Damage> {
        if self.synced < self.written {
            let watch = Stopwatch::start();
            self.writer.sync()?;
            self.meters.note_sync(watch.passed());
            self.synced = self.written;
        }
        Ok(())
    }

    /// Another thread has synced batches up to this one.
    pub(super) fn set_synced(&mut self, batch: u64) {
        self.synced = self.synced.max(batch);
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// The file of the newest segment.
    pub(super) fn file(&self) -> &Arc<dyn File> {
        self.writer.file()
    }
}
