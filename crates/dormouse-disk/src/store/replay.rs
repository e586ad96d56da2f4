//! Replay: the checkpoint and the facts after it make the machine what it was.

use dormouse_core::Map;
use dormouse_core::machine::Machine;

use super::Sizes;
use crate::checkpoint;
use crate::clock::SavedClock;
use crate::damage::Damage;
use crate::disk::Disk;
use crate::journal::{BatchHeader, Boot, CheckpointHead, Plan, Record};
use crate::memtable::Memtable;
use crate::timeline::DiskTimeline;

/// The state that replay gathers besides the machine.
#[derive(Default)]
pub(super) struct ReplayState {
    pub(super) saved: SavedClock,
    pub(super) next_run: u64,
    pub(super) epoch: u32,
    /// Bytes of the checkpoint, and as many of them as are in the journal.
    pub(super) checkpoint_bytes: u64,
    pub(super) inline_bytes: u64,
    pub(super) facts: u64,
    /// Entries consumed, by run.
    consumed: Map<u64, u64>,
}

/// Feeds the machine the checkpoint, be it in a file of this number or in the first segment, and
/// the facts after it.
pub(super) fn replay(
    disk: &dyn Disk,
    plan: &Plan,
    checkpoint: Option<u64>,
    sizes: Sizes,
    machine: &mut Machine<DiskTimeline>,
) -> Result<ReplayState, Damage> {
    let mut replayed = ReplayState { next_run: 1, epoch: 1, ..ReplayState::default() };
    // Checkpoints met later change nothing: all that is in them is known already.
    let mut first = None;
    plan.replay(disk, &mut |header: &BatchHeader, record: Record| {
        let in_first = *first.get_or_insert(header.number) == header.number;
        match (record, checkpoint) {
            (Record::Fact(fact), _) => {
                replayed.facts += 1;
                machine.replay(fact);
            }
            (Record::Boot(boot), _) => replayed.note_boot(&boot),
            (Record::Checkpoint(head), Some(number)) if in_first => {
                let restore = &mut |record| replayed.restore(record, sizes, machine);
                let bytes = checkpoint::read(disk, number, Some(&head), restore)?;
                replayed.checkpoint_bytes = bytes;
            }
            (record, None) if in_first => {
                replayed.checkpoint_bytes = header.end();
                replayed.inline_bytes = header.end();
                replayed.restore(record, sizes, machine);
            }
            _ => {}
        }
        Ok(())
    })?;
    for open in &mut machine.timeline_mut().sources.runs {
        open.consumed = replayed.consumed.get(&open.no()).copied().unwrap_or(0);
    }
    replayed.advance(&plan.last);
    Ok(replayed)
}

impl ReplayState {
    fn note_boot(&mut self, boot: &Boot) {
        self.epoch = self.epoch.max(boot.epoch);
        self.saved = SavedClock {
            boot_id: boot.boot_id,
            boottime_ms: boot.boottime_ms,
            steady_ms: boot.steady_ms,
            wall_ms: boot.wall_ms,
        };
    }

    /// Takes a piece of the checkpoint over.
    fn restore(&mut self, record: Record, sizes: Sizes, machine: &mut Machine<DiskTimeline>) {
        match record {
            Record::Checkpoint(head) => self.restore_head(&head, sizes, machine),
            Record::Topic(image) => machine.restore_topic(image),
            Record::Lease(image) => machine.restore_lease(image),
            Record::Lock(image) => machine.restore_lock(image),
            Record::Frontier(image) => {
                let sources = &mut machine.timeline_mut().sources;
                sources.purged_jobs += u64::from(image.class.is_none());
                sources.frontiers.restore(&image);
            }
            Record::RunUse(used) => {
                self.consumed.insert(used.no, used.consumed);
            }
            _ => {}
        }
    }

    fn restore_head(
        &mut self,
        head: &CheckpointHead,
        sizes: Sizes,
        machine: &mut Machine<DiskTimeline>,
    ) {
        machine.restore_machine(head.machine);
        let sources = &mut machine.timeline_mut().sources;
        sources.mem = Memtable::new(sizes.memtable_bytes, head.machine.next_id);
        sources.topics_frozen = head.machine.next_topic;
        self.epoch = self.epoch.max(head.machine.epoch);
        self.next_run = head.next_run;
        self.saved = SavedClock {
            boot_id: head.boot_id,
            boottime_ms: head.boottime_ms,
            steady_ms: head.steady_ms,
            wall_ms: head.wall_ms,
        };
    }

    /// The newest batch knows the clocks best.
    fn advance(&mut self, last: &BatchHeader) {
        let passed_ms = last.steady_ms.saturating_sub(self.saved.steady_ms);
        self.saved.boottime_ms += passed_ms;
        self.saved.steady_ms += passed_ms;
        self.saved.wall_ms = last.wall_ms;
    }
}
