//! The checkpoint: all that a replay must know before the first record after it.

use dormouse_core::time::Now;

use super::Store;
use crate::clock::SavedClock;
use crate::journal::{CheckpointHead, Record, RunUse};

impl Store {
    /// Fills the open batch, which is empty, with a checkpoint.
    pub(super) fn push_checkpoint(&mut self, now: Now) {
        debug_assert!(self.builder.is_empty(), "a checkpoint is a batch of its own");
        let saved = self.saved(now);
        self.builder.push(&Record::Checkpoint(CheckpointHead {
            machine: self.machine.machine_image(),
            boot_id: saved.boot_id,
            boottime_ms: saved.boottime_ms,
            steady_ms: saved.steady_ms,
            wall_ms: saved.wall_ms,
            next_run: self.next_run,
        }));
        for image in self.machine.topic_images() {
            self.builder.push(&Record::Topic(image));
        }
        for image in self.machine.lease_images() {
            self.builder.push(&Record::Lease(image));
        }
        for image in self.machine.lock_images() {
            self.builder.push(&Record::Lock(image));
        }
        let sources = &mut self.machine.timeline_mut().sources;
        let oldest = sources.oldest_age();
        sources.frontiers.forget_before(oldest);
        for image in sources.frontiers.images() {
            self.builder.push(&Record::Frontier(image));
        }
        let runs = sources.runs.iter().map(|open| (open.no(), open.consumed));
        let frozen = sources.frozen.iter().map(|frozen| (frozen.no, frozen.consumed));
        for (no, consumed) in runs.chain(frozen).filter(|(_, consumed)| *consumed > 0) {
            self.builder.push(&Record::RunUse(RunUse { no, consumed }));
        }
        self.builder.push(&Record::CheckpointEnd);
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
