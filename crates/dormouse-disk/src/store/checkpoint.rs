//! The checkpoint: all that a replay must know before the first record after it.
//!
//! A freeze takes a snapshot, in a millisecond; a task writes it. The head alone, a few numbers, is
//! also the first batch of the new segment.

use std::sync::Arc;

use dormouse_core::machine::MachineSnapshot;
use dormouse_core::time::Now;

use super::Store;
use super::flush::FlushProgress;
use crate::checkpoint;
use crate::clock::SavedClock;
use crate::damage::Damage;
use crate::disk::Disk;
use crate::frontier::Frontiers;
use crate::journal::{CheckpointHead, Record, RunUse};

/// A checkpoint that is to be written. Dropping it may take long.
pub(super) struct CheckpointSnapshot {
    /// The number of its file, and of the segment that begins with its head.
    number: u64,
    head: CheckpointHead,
    machine: MachineSnapshot,
    frontiers: Frontiers,
    runs: Vec<RunUse>,
    progress: Arc<FlushProgress>,
}

impl CheckpointSnapshot {
    /// How far its flush has come.
    pub(super) fn progress(&self) -> Arc<FlushProgress> {
        Arc::clone(&self.progress)
    }

    /// Writes the file; it is durable when this returns. Gives its number and its bytes.
    pub(super) fn write(&self, disk: &dyn Disk) -> Result<(u64, u64), Damage> {
        let head = std::iter::once(Record::Checkpoint(self.head));
        let records = head
            .chain(self.machine.topics().map(Record::Topic))
            .chain(self.machine.leases().map(Record::Lease))
            .chain(self.machine.locks().map(Record::Lock))
            .chain(self.frontiers.images().map(Record::Frontier))
            .chain(self.runs.iter().copied().map(Record::RunUse))
            .chain(std::iter::once(Record::CheckpointEnd))
            .inspect(|_| self.progress.checkpoint().note(1));
        Ok((self.number, checkpoint::write(disk, self.number, records)?))
    }
}

impl Store {
    /// The checkpoint of the segment that begins now. `run` is the number of the run-to-be of the
    /// memtable that freezes with it.
    pub(super) fn snapshot(&mut self, now: Now, run: u64) -> CheckpointSnapshot {
        let head = self.checkpoint_head(now);
        let machine = self.machine.snapshot();
        let sources = &mut self.machine.timeline_mut().sources;
        let oldest = sources.oldest_age().min(run);
        sources.frontiers.set_oldest(oldest);
        let runs = sources.runs.iter().map(|open| (open.no(), open.consumed));
        let frozen = sources.frozen.iter().map(|frozen| (frozen.no, frozen.consumed));
        let used = runs.chain(frozen).filter(|(_, consumed)| *consumed > 0);
        let runs = used.map(|(no, consumed)| RunUse { no, consumed }).collect();
        let frontiers = sources.frontiers.snapshot();
        let records = machine.count() + frontiers.len();
        let progress = FlushProgress::new(records, sources.mem.len());
        CheckpointSnapshot { number: self.segment, head, machine, runs, frontiers, progress }
    }

    /// Fills the open batch, which is empty, with the head of a checkpoint: that is all of it for
    /// an empty store, and for others what its file must begin with.
    pub(super) fn push_checkpoint_head(&mut self, now: Now) {
        debug_assert!(self.builder.is_empty(), "the head of a checkpoint is a batch of its own");
        let head = self.checkpoint_head(now);
        self.builder.push(&Record::Checkpoint(head));
        self.builder.push(&Record::CheckpointEnd);
    }

    fn checkpoint_head(&self, now: Now) -> CheckpointHead {
        let saved = self.saved(now);
        CheckpointHead {
            machine: self.machine.machine_image(),
            boot_id: saved.boot_id,
            boottime_ms: saved.boottime_ms,
            steady_ms: saved.steady_ms,
            wall_ms: saved.wall_ms,
            next_run: self.next_run,
        }
    }

    /// The clocks, so that steady time can go on from here.
    fn saved(&self, now: Now) -> SavedClock {
        let passed_ms = now.steady_ms.saturating_sub(self.boot.steady_ms);
        SavedClock {
            boot_id: self.boot.boot_id,
            boottime_ms: self.boot.boottime_ms + passed_ms,
            steady_ms: now.steady_ms,
            wall_ms: now.wall_ms,
        }
    }
}
