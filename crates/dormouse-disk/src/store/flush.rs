//! Flush: the memtable becomes a run, and the journal before it may go.
//!
//! In one step, with no record between, the journal starts a new segment whose first batch is the
//! head of the checkpoint, the rest of the checkpoint is snapshotted, and the memtable freezes.
//! Tasks write the checkpoint (first, because changes meanwhile copy what they share with it) and
//! the run. Then, once the batch is synced, a task writes the manifest that names the new first
//! segment and the checkpoint, and lists the runs *as they were at the checkpoint*; then the run
//! takes the frozen memtable's place.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dormouse_core::time::Now;

use super::backup::CheckpointInfo;
use super::checkpoint::CheckpointSnapshot;
use super::task::Work;
use super::{BackupRequest, FLUSHES_MAX, SegmentBatch, Store, Task, TaskResult};
use crate::checkpoint::checkpoint_name;
use crate::journal::segment_name;
use crate::manifest::{Manifest, RunRef, run_name};
use crate::memtable::Memtable;
use crate::run::Run;
use crate::timeline::{FrozenMemtable, OpenRun};

/// Records after which a memtable is frozen whatever its size: a start applies about a million of
/// them in a second. One more, and the hash table of cancelled jobs would double.
const RECORDS_MAX: u64 = 7 << 16;
/// After this long without a change, a memtable of some size is frozen.
const QUIET_MS: u64 = 5_000;
/// After this long, a memtable of some more size is frozen in any case.
const AGE_MS: u64 = 30_000;

/// Shares of a memtable are in thousandths. While the flushes before it go on, it may be filled to
/// this share at once, and further as they get on.
pub(super) const FULL: u64 = 1_000;
pub(super) const FILLED_AT_ONCE: u64 = FULL / 8;

/// A filter over the keys of all runs is for one key per so many bytes of a memtable, at least.
const BYTES_PER_KEY: usize = 16;

/// A flush under way.
pub(super) struct Flush {
    /// The run-to-be; `None` = the memtable was empty.
    run: Option<RunRef>,
    table: Option<Arc<Memtable>>,
    /// The run, once it is written.
    written: Option<Arc<Run>>,
    /// The checkpoint, until a task takes it; and whether it is written.
    checkpoint: Option<Box<CheckpointSnapshot>>,
    checkpoint_written: bool,
    progress: Arc<FlushProgress>,
    /// The batch with the checkpoint's head, and its segment.
    batch: u64,
    segment: u64,
    /// Runs not fully consumed at the checkpoint, and the runs-to-be of older flushes.
    runs: Vec<RunRef>,
    /// The request for a backup as of this checkpoint, and the checkpoint's contents.
    backups: Vec<BackupRequest>,
    as_of: CheckpointInfo,
}

/// How far a flush has come; its tasks tell the engine.
#[derive(Debug, Default)]
pub(super) struct FlushProgress {
    checkpoint: Part,
    run: Part,
}

/// One file of a flush: its records, or entries, and how many of them are written.
#[derive(Debug, Default)]
pub(super) struct Part {
    all: u64,
    written: AtomicU64,
}

impl Part {
    /// So many more are written.
    pub(super) fn note(&self, count: usize) {
        self.written.fetch_add(count as u64, Relaxed);
    }
}

impl FlushProgress {
    pub(super) fn new(records: usize, entries: usize) -> Arc<FlushProgress> {
        let part = |all: usize| Part { all: all as u64, written: AtomicU64::new(0) };
        Arc::new(FlushProgress { checkpoint: part(records), run: part(entries) })
    }

    pub(super) fn checkpoint(&self) -> &Part {
        &self.checkpoint
    }

    pub(super) fn run(&self) -> &Part {
        &self.run
    }
}

impl Flush {
    /// Its files are durable.
    fn is_written(&self) -> bool {
        self.checkpoint_written && (self.table.is_none() || self.written.is_some())
    }
}

impl Store {
    /// Whether it is time to freeze the memtable.
    pub fn wants_freeze(&self) -> bool {
        let full = self.filled() >= FULL;
        let merged = self.merge.as_ref().is_some_and(|merge| merge.is_ready());
        let wanted = full || !self.backups_wanted.is_empty();
        let at_leisure = merged || self.is_quiet();
        self.flushes.len() < FLUSHES_MAX && (wanted || (at_leisure && self.flushes.is_empty()))
    }

    /// How full the memtable is, or the journal since the last checkpoint: in thousandths.
    pub(super) fn filled(&self) -> u64 {
        let share = |part: u64, whole: u64| part.saturating_mul(FULL) / whole.max(1);
        let mem = self.machine.timeline().sources.mem.bytes() as u64;
        let bytes = share(mem, self.sizes.memtable_bytes as u64);
        let segment_bytes = self.sizes.segment_bytes.max(self.checkpoint_bytes);
        let journal = share(self.journal_bytes, segment_bytes);
        // A checkpoint that is larger than the journal is not worth it.
        let is_worth_it = self.journal_bytes >= self.checkpoint_bytes;
        let records = if is_worth_it { share(self.journal_records, RECORDS_MAX) } else { 0 };
        bytes.max(journal).max(records)
    }

    /// Whether there is time to bring the memtable into order: tombstones meet their jobs, and give
    /// space back, only in runs; and a start that finds a short journal is a quick one.
    fn is_quiet(&self) -> bool {
        let bytes = self.journal_bytes;
        let passed_ms = |since: u64| self.ticked_at.saturating_sub(since);
        bytes >= self.checkpoint_bytes
            && ((passed_ms(self.changed_at) >= QUIET_MS && bytes >= self.sizes.segment_bytes / 64)
                || (passed_ms(self.frozen_at) >= AGE_MS && bytes >= self.sizes.segment_bytes / 8))
    }

    /// Flushing lags behind: the next memtable is half full, and memory is what it takes.
    pub fn is_flush_behind(&self) -> bool {
        let is_half_full = self.filled() >= FULL / 2;
        self.flushes.len() >= FLUSHES_MAX || (!self.flushes.is_empty() && is_half_full)
    }

    /// Flushing lags so far behind that new work must wait. The memtable fills as fast as those
    /// before it are written, so nobody waits for a whole flush.
    pub fn is_stalled(&self) -> bool {
        self.flushes.len() >= FLUSHES_MAX && self.filled() >= self.fillable()
    }

    /// Half of that room is taken.
    pub fn is_filling(&self) -> bool {
        self.flushes.len() >= FLUSHES_MAX && self.filled() >= self.fillable() / 2
    }

    /// How full the memtable may be by now: all of it once the oldest flush is over, before which
    /// the checkpoints of all are written.
    pub(super) fn fillable(&self) -> u64 {
        let checkpoints = self.flushes.iter().map(|flush| &flush.progress.checkpoint);
        let run = self.flushes.front().map(|flush| &flush.progress.run);
        let (mut written, mut all) = (0, 1);
        for part in checkpoints.chain(run) {
            written += part.written.load(Relaxed).min(part.all);
            all += part.all;
        }
        FILLED_AT_ONCE + (FULL - FILLED_AT_ONCE) * written / all
    }

    /// Freezes the memtable. The open batch must have been sealed; the checkpoint's head is
    /// returned.
    pub fn freeze(&mut self, now: Now) -> SegmentBatch {
        self.swap_in_merge();
        self.segment += 1;
        // The run-to-be is named in its own checkpoint, so that a cursor on it has a name.
        let no = self.next_run;
        self.next_run += 1;
        let head_batch = self.batch;
        let checkpoint = self.snapshot(now, no);
        self.push_checkpoint_head(now);
        let batch = self.seal_records();
        (self.journal_bytes, self.journal_records) = (0, 0);
        self.frozen_at = now.steady_ms;
        let sources = &self.machine.timeline().sources;
        let older = sources.frozen.iter().map(|frozen| RunRef { no: frozen.no, age: frozen.age });
        let mut runs: Vec<RunRef> =
            sources.runs.iter().filter(|open| !open.is_done()).map(run_ref).collect();
        runs.extend(older);
        let table = self.freeze_memtable(no);
        self.flushes.push_back(Flush {
            run: table.is_some().then_some(RunRef { no, age: no }),
            table,
            written: None,
            progress: checkpoint.progress(),
            checkpoint: Some(Box::new(checkpoint)),
            checkpoint_written: false,
            batch: head_batch,
            segment: self.segment,
            runs,
            backups: std::mem::take(&mut self.backups_wanted),
            as_of: self.as_of(now, batch.len() as u64),
        });
        SegmentBatch { batch, segment: self.segment, now }
    }

    /// The memtable becomes a source that no longer changes, unless it is empty.
    fn freeze_memtable(&mut self, no: u64) -> Option<Arc<Memtable>> {
        let image = self.machine.machine_image();
        let before = &self.machine.timeline().sources.mem;
        let empty = before.successor(self.sizes.memtable_bytes, image.next_id);
        let leftovers = &mut self.leftovers;
        self.machine.timeline_mut().change_sources(|sources| {
            sources.topics_frozen = image.next_topic;
            sources.mem.settle();
            let table = Arc::new(std::mem::replace(&mut sources.mem, empty));
            if table.len() == 0 {
                // Its jobs have left, but not their bytes: dropping them takes a while.
                leftovers.tables.push(table);
                return None;
            }
            let frozen = FrozenMemtable { table: Arc::clone(&table), no, age: no, consumed: 0 };
            sources.frozen.push(frozen);
            Some(table)
        })
    }

    /// The next task of the flush line, one at a time.
    pub fn flush_task(&mut self) -> Option<Task> {
        if self.flush_busy {
            return None;
        }
        let task = self.next_flush_task()?;
        self.flush_busy = true;
        Some(task)
    }

    fn next_flush_task(&mut self) -> Option<Task> {
        // Before the next manifest lets files go that this one lists.
        if let Some(pin) = self.backups_due.pop_front() {
            return Some(Task(Work::Backup(pin)));
        }
        // The next memtable needs the memory of the last. And while memtables fill faster than they
        // are written, there is always another task: what past flushes left would pile up.
        if let Some(leftovers) = self.leftovers.take() {
            return Some(Task(Work::Remove(leftovers)));
        }
        // Puts with a key need the filters.
        if let Some(task) = self.cover_task() {
            return Some(task);
        }
        // The manifest of an older flush goes first: it frees journal and memory.
        if let Some(flush) = self.flushes.front()
            && flush.is_written()
            && flush.batch <= self.synced
        {
            let mut runs: Vec<RunRef> = flush.runs.clone();
            runs.extend(flush.run);
            let (first_segment, checkpoint) = (flush.segment, Some(flush.segment));
            let manifest = Manifest { first_segment, checkpoint, runs, ..self.manifest.clone() };
            return Some(Task(Work::Manifest(manifest)));
        }
        if let Some(checkpoint) = self.flushes.iter_mut().find_map(|flush| flush.checkpoint.take())
        {
            return Some(Task(Work::Checkpoint(checkpoint)));
        }
        let unwritten =
            self.flushes.iter().find(|flush| flush.table.is_some() && flush.written.is_none());
        let Some(Flush { run: Some(run), table: Some(table), progress, .. }) = unwritten else {
            return None;
        };
        let (table, progress) = (Arc::clone(table), Arc::clone(progress));
        Some(Task(Work::Flush { run: *run, table, progress }))
    }

    /// Adds the keys of a run to the filter over all runs, if there is one whose keys are not there
    /// yet.
    fn cover_task(&mut self) -> Option<Task> {
        let keys_min = (self.sizes.memtable_bytes / BYTES_PER_KEY) as u64;
        let sources = &mut self.machine.timeline_mut().sources;
        let (run, room) = sources.uncovered_run(keys_min)?;
        Some(Task(Work::Cover { run, room }))
    }

    /// Takes the result of a task of the flush line.
    pub(super) fn finish_flush_task(&mut self, done: TaskResult) {
        match done {
            TaskResult::Flushed { run } => {
                let no = run.meta().no;
                self.run_files.insert(no);
                let flush = self.flushes.iter_mut().find(|f| f.run.is_some_and(|run| run.no == no));
                if let Some(flush) = flush {
                    flush.written = Some(run);
                }
                self.flush_busy = false;
            }
            TaskResult::Checkpoint { number, bytes } => {
                self.flush_busy = false;
                // A checkpoint that is larger than a segment must not call for the next one.
                self.checkpoint_bytes = bytes;
                self.check_space();
                let flush = self.flushes.iter_mut().find(|flush| flush.segment == number);
                if let Some(flush) = flush {
                    flush.checkpoint_written = true;
                }
                // Not before: what the snapshot shares would be copied.
                self.machine.timeline_mut().sources.frontiers.begin_to_forget();
            }
            TaskResult::Manifest(manifest) => {
                self.flush_busy = false;
                self.install(manifest);
            }
            TaskResult::Covered { run, filter } => {
                self.flush_busy = false;
                self.machine.timeline_mut().sources.cover(run, filter);
            }
            TaskResult::Removed | TaskResult::Backup => self.flush_busy = false,
            TaskResult::Merged { .. } | TaskResult::Weighed { .. } => {}
        }
    }

    /// The manifest is durable: the run takes the frozen memtable's place, older files may go.
    fn install(&mut self, manifest: Manifest) {
        let segments = self.manifest.first_segment..manifest.first_segment;
        self.segments.retain(|segment, _| *segment >= manifest.first_segment);
        let before = std::mem::replace(&mut self.manifest, manifest);
        self.leftovers.names.extend(before.checkpoint.map(checkpoint_name));
        let Some(flush) = self.flushes.pop_front() else { return };
        self.plan_backups(flush.backups, flush.as_of);
        if let Some(run) = flush.written {
            self.machine.timeline_mut().change_sources(|sources| {
                let frozen = sources.frozen.remove(0);
                sources.runs.push(OpenRun::new(run, frozen.consumed));
            });
        }
        self.leftovers.tables.extend(flush.table);
        let removed: Vec<u64> = self.drop_unlisted_runs();
        self.leftovers.names.extend(removed.into_iter().map(run_name));
        self.leftovers.names.extend(segments.map(segment_name));
    }

    /// Runs that no manifest, present or to come, lists any more. Not only those that the last one
    /// listed: an output can be consumed whole before any lists it, an input while it is merged.
    fn drop_unlisted_runs(&mut self) -> Vec<u64> {
        let pending = self.flushes.iter().flat_map(|flush| flush.runs.iter().chain(&flush.run));
        let mut listed: BTreeSet<u64> = pending.map(|run| run.no).collect();
        listed.extend(self.manifest.runs.iter().map(|run| run.no));
        let merging = |no: u64| self.merge.as_ref().is_some_and(|merge| merge.names(no));
        let is_gone = |no: &u64| !listed.contains(no) && !merging(*no);
        let gone: Vec<u64> = self.run_files.iter().copied().filter(is_gone).collect();
        gone.iter().for_each(|no| {
            self.run_files.remove(no);
        });
        let runs = self.machine.timeline_mut().change_sources(|sources| {
            gone.iter().for_each(|no| sources.cache.forget(*no));
            sources.remove_runs(|no| gone.contains(&no))
        });
        self.leftovers.runs.extend(runs);
        gone
    }
}

pub(super) fn run_ref(open: &OpenRun) -> RunRef {
    RunRef { no: open.no(), age: open.age() }
}
