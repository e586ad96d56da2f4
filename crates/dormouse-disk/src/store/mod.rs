//! The store: the machine over a disk timeline, its journal and its background work, without a
//! thread of its own.
//!
//! A driver feeds it commands and time, takes sealed batches to write, reports which are synced,
//! and runs the tasks it asks for, on any thread, in any order the store allows. The engine drives
//! it with threads; tests drive it step by step and crash it between any two calls.
//!
//! Invariants:
//! - Batch numbers have no gap; a batch is sealed once and written in order.
//! - An answer that waits leaves only after its batch (and all before) is as durable as promised.
//! - A manifest is written only after the checkpoint it names, and the batch with its head, are
//!   synced, manifests in the order of their checkpoints. The file of a run or checkpoint is
//!   removed only after a durable manifest that does not name it.

mod backup;
mod checkpoint;
mod choice;
mod figures;
mod flush;
mod leftovers;
mod merge;
mod recover;
mod replay;
mod task;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use dormouse_core::backend::{Answer, Request, Ticket};
use dormouse_core::error::{Code, Error, Fatal};
use dormouse_core::event::Event;
use dormouse_core::fact::{Destination, Fact};
use dormouse_core::machine::{Machine, Output, When};
use dormouse_core::time::Now;

use crate::disk::Disk;
use crate::journal::{BatchBuilder, Record, SealedBatch};
use crate::manifest::Manifest;
use crate::timeline::DiskTimeline;
#[cfg(test)]
pub(crate) use backup::CheckpointInfo;
pub(crate) use backup::{BackupRequest, PinnedFile, PinnedFiles};
use figures::RunNotes;
use flush::Flush;
use leftovers::Leftovers;
use merge::Merge;
pub(crate) use recover::open_run;
pub use recover::{OpenError, RecoveredStore};
pub use task::{Task, TaskResult};

/// Sizes that shape the store; the defaults are for production, small ones for tests.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// A memtable is frozen at about this size.
    pub memtable_bytes: usize,
    /// A memtable is also frozen when the journal since the last checkpoint has this size.
    pub segment_bytes: u64,
    /// The number of neighbouring runs of one tier at which they are merged.
    pub merge_runs: usize,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { memtable_bytes: 48 << 20, segment_bytes: 96 << 20, merge_runs: 16 }
    }
}

/// The wall clock was set if it moved this far against the steady one; slewing needs half an hour
/// for that, which makes a batch now and then.
const CLOCK_STEP_MS: u64 = 1_000;

/// How often free space is checked while puts are refused for lack of it.
const SPACE_CHECK_MS: u64 = 1_000;

/// The most memtables that are being written at once.
const FLUSHES_MAX: usize = 2;

/// A batch to be written.
#[derive(Debug)]
pub struct SegmentBatch {
    /// What to write.
    pub batch: SealedBatch,
    /// The segment it belongs to; a new number means a new segment.
    pub segment: u64,
    /// The time it is stamped with.
    pub now: Now,
}

/// See the module.
pub struct Store {
    disk: Arc<dyn Disk>,
    sizes: Sizes,
    machine: Machine<DiskTimeline>,
    out: Output,
    /// Whether facts become events, and those since the last call of `take_events`.
    watched: bool,
    events: Vec<Event>,
    builder: BatchBuilder,
    /// The number of the batch that is being filled.
    batch: u64,
    segment: u64,
    /// Bytes and records of batches since the last checkpoint, and bytes of the last one written.
    journal_bytes: u64,
    journal_records: u64,
    checkpoint_bytes: u64,
    /// When the last tick was, the last change, and the last freeze: steady ms.
    ticked_at: u64,
    changed_at: u64,
    frozen_at: u64,
    /// Bytes of every segment that the manifest still needs.
    segments: BTreeMap<u64, u64>,
    /// Batches up to this one are synced.
    synced: u64,
    flushes: VecDeque<Flush>,
    merge: Option<Merge>,
    run_notes: RunNotes,
    /// The newest durable manifest.
    manifest: Manifest,
    /// The next run's number, and age.
    next_run: u64,
    /// Runs whose files are there and have not been given up.
    run_files: BTreeSet<u64>,
    leftovers: Leftovers,
    /// Backups that wait for the next freeze, and those whose manifest is durable.
    backups_wanted: Vec<BackupRequest>,
    backups_due: VecDeque<backup::Pin>,
    /// A flush task is out.
    flush_busy: bool,
    boot: crate::clock::SavedClock,
    /// While puts are refused for want of space: when that was last looked at.
    space_checked_at: Option<u64>,
    /// How far the wall clock was ahead of the steady one in the newest record of it.
    wall_ahead_ms: i64,
}

fn wall_ahead_ms(now: Now) -> i64 {
    now.wall_ms.wrapping_sub(now.steady_ms) as i64
}

impl Store {
    /// Applies one command.
    pub fn step(&mut self, now: Now, request: Request) -> Result<(), Fatal> {
        self.machine.step(now, request, &mut self.out)?;
        self.collect(now);
        Ok(())
    }

    /// Does what became possible by time and syncs.
    pub fn tick(&mut self, now: Now) -> Result<(), Fatal> {
        self.ticked_at = now.steady_ms;
        self.note_clock_step(now);
        if self.space_checked_at.is_some_and(|at| now.steady_ms >= at + SPACE_CHECK_MS) {
            self.check_space();
            self.space_checked_at = self.space_checked_at.map(|_| now.steady_ms);
        }
        self.machine.tick(now, &mut self.out)?;
        self.machine.timeline_mut().sources.frontiers.forget_portion();
        self.collect(now);
        Ok(())
    }

    /// Leases and the like run out slowly while the disk is behind.
    pub fn set_disk_behind(&mut self, is_behind: bool) {
        self.machine.set_disk_behind(is_behind);
    }

    /// Does a portion of a command that takes long, if there is one.
    pub fn continue_long(&mut self, now: Now) -> Result<(), Fatal> {
        self.machine.continue_long(now, &mut self.out)?;
        self.collect(now);
        Ok(())
    }

    /// A wall clock that was set must be on disk: after a power cut the steady clock goes on by the
    /// wall time that passed since the last batch, and a step would count as time.
    fn note_clock_step(&mut self, now: Now) {
        if self.wall_ahead_ms.abs_diff(wall_ahead_ms(now)) > CLOCK_STEP_MS {
            self.wall_ahead_ms = wall_ahead_ms(now);
            self.builder.push(&Record::ClockStep);
        }
    }

    /// How long until `tick` is needed; `None` = until something happens.
    pub fn next_wake(&self, now: Now) -> Option<u64> {
        self.machine.next_wake(now)
    }

    /// Appends facts to the open batch. The job of a put is encoded already, in the memtable.
    fn collect(&mut self, now: Now) {
        if self.watched {
            self.machine.add_events(now, &self.out.facts, &mut self.events);
        }
        let mem = &mut self.machine.timeline_mut().sources.mem;
        let arrivals = mem.take_arrivals();
        let mut arrived = arrivals.iter();
        for fact in &self.out.facts {
            // Facts and arrivals are in the same order. A place says nothing: a job may come to
            // rest where another fact of this step just left it.
            let arrival = if brings_arrival(fact) { arrived.next() } else { None };
            match (fact, arrival) {
                (Fact::Put { at, left, left_bytes, key_loser, .. }, Some((place, span)))
                    if place == at =>
                {
                    let encoded = mem.encoded(*span);
                    self.builder.push_put(at, left.as_ref(), *left_bytes, *key_loser, encoded);
                }
                _ => self.builder.push_fact(fact),
            }
        }
        self.out.facts.clear();
        mem.return_arrivals(arrivals);
    }

    /// Answers since the last call. One that waits belongs to the batch that is open now.
    pub fn answers(&mut self) -> std::vec::Drain<'_, (Ticket, Answer, When)> {
        self.out.answers.drain(..)
    }

    /// From now on facts become events, or no longer do.
    pub fn set_watched(&mut self, watched: bool) {
        self.watched = watched;
    }

    /// Events since the last call. They belong to the open batch, and may be emitted when it is as
    /// durable as promised.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Bytes of the open batch.
    pub fn batch_bytes(&self) -> usize {
        self.builder.len()
    }

    /// Closes the open batch, if there is something in it.
    pub fn seal(&mut self, now: Now) -> Option<SegmentBatch> {
        if self.builder.is_empty() {
            return None;
        }
        self.changed_at = now.steady_ms;
        let batch = self.seal_records();
        Some(SegmentBatch { batch, segment: self.segment, now })
    }

    fn seal_records(&mut self) -> SealedBatch {
        let batch = self.builder.seal(self.batch);
        self.journal_bytes += batch.len() as u64;
        self.journal_records += batch.records;
        *self.segments.entry(self.segment).or_default() += batch.len() as u64;
        self.batch += 1;
        self.machine.set_batch(self.batch);
        batch
    }

    /// A buffer that was written may be filled again.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.builder.recycle(bytes);
    }

    /// Batches up to this one are as durable as promised: their puts may be handed out.
    pub fn set_durable(&mut self, batch: u64) {
        self.machine.timeline_mut().set_durable(batch);
        self.machine.synced();
    }

    /// Batches up to this one are synced.
    pub fn set_synced(&mut self, batch: u64) {
        self.synced = self.synced.max(batch);
    }

    /// The last batch that was sealed.
    pub fn last_sealed(&self) -> u64 {
        self.batch - 1
    }

    /// Bytes of the checkpoint and of the journal after it: what a start would read.
    pub fn journal_bytes(&self) -> u64 {
        let checkpoint = self.manifest.checkpoint.map_or(0, |_| self.checkpoint_bytes);
        self.segments.values().sum::<u64>() + checkpoint
    }

    /// Bytes of the memtable and of those that are being written.
    pub fn memtable_bytes(&self) -> u64 {
        let sources = &self.machine.timeline().sources;
        let frozen: usize = sources.frozen.iter().map(|frozen| frozen.table.bytes()).sum();
        (sources.mem.bytes() + frozen) as u64
    }

    /// How many runs are in use, and their bytes.
    pub fn runs(&self) -> (u64, u64) {
        let runs = &self.machine.timeline().sources.runs;
        (runs.len() as u64, runs.iter().map(|open| open.run.meta().bytes).sum())
    }

    /// Refuses puts while the disk is short of space; all else goes on.
    pub fn check_space(&mut self) {
        let (needed, free) = (self.space_needed(), self.space_free());
        self.space_checked_at = (free < needed).then_some(0);
        self.machine.set_full((free < needed).then(|| {
            Error::new(
                Code::Full,
                format!(
                    "the disk has {free} bytes free, put needs {needed}; free some space or \
                     consume jobs (ack, cancel and reserve still work)"
                ),
            )
        }));
    }

    /// Room for what is in memory and for what is still answered while puts are refused. The next
    /// checkpoints hold every leased job; reserves go on, so they may be larger than the last one.
    fn space_needed(&self) -> u64 {
        let checkpoint = self.checkpoint_bytes.max(self.machine.leased_bytes());
        2 * self.sizes.memtable_bytes as u64 + self.sizes.segment_bytes + 2 * checkpoint
    }

    fn space_free(&self) -> u64 {
        // An unknown amount is taken for enough: a write that fails stops the store anyway.
        self.disk.free_bytes().unwrap_or(u64::MAX)
    }

    /// The rules and their tables, for questions.
    pub fn rules(&self) -> &Machine<DiskTimeline> {
        &self.machine
    }

    /// The rules and their tables, for questions that read runs.
    pub fn machine(&mut self) -> &mut Machine<DiskTimeline> {
        &mut self.machine
    }

    /// The last words before a clean stop.
    pub fn push_seal(&mut self) {
        self.builder.push(&Record::Seal);
    }
}

/// Whether applying this fact lets something come to rest.
fn brings_arrival(fact: &Fact) -> bool {
    match fact {
        Fact::Put { .. } => true,
        Fact::Move { to, .. } => matches!(to, Destination::Rest(_) | Destination::Hold(_)),
        _ => false,
    }
}
