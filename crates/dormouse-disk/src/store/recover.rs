//! Start: from nothing, or from manifest, checkpoint and the batches after it.
//!
//! Replay decides nothing and reads no run: every departure subtracts 1 at the place left, every
//! arrival adds 1 at the place entered, and departures from places that rest in runs become
//! tombstones in the memtable by themselves. Before it reads them a start syncs the segments: what
//! a killed process left in the page cache must not be built on unsynced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dormouse_core::error::{Error, Fatal};
use dormouse_core::machine::{Machine, Output};
use dormouse_core::time::Now;

use super::replay::replay;
use super::{Sizes, Store};
use crate::checkpoint::{self, checkpoint_number};
use crate::clock::{Reading, SavedClock, SteadyClock};
use crate::damage::Damage;
use crate::disk::Disk;
use crate::frontier::Frontiers;
use crate::journal::{BatchBuilder, Boot, Record, SegmentWriter, plan, segment_number, settle};
use crate::manifest::{self, Manifest, RunRef, run_number};
use crate::memtable::Memtable;
use crate::run::Run;
use crate::timeline::{DiskTimeline, OpenRun, Sources};

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be used.
    #[error(transparent)]
    Dir(#[from] crate::lock::DirError),
    /// A file is damaged, of a newer format, or cannot be read or written. Nothing was deleted.
    #[error("{0} (nothing was changed; restore a backup, or ask `verify` for the whole picture)")]
    Damage(#[from] Damage),
    /// The files contradict each other.
    #[error(transparent)]
    Store(#[from] Fatal),
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Error {
        Error::unavailable(error.to_string())
    }
}

/// A store that is ready, the writer of its journal, and its clock.
pub struct RecoveredStore {
    /// The store.
    pub store: Store,
    /// Where its batches go.
    pub writer: SegmentWriter,
    /// The clock that makes its `now`.
    pub clock: SteadyClock,
}

impl Store {
    /// Opens the store in a directory, or makes one there.
    pub fn open(
        disk: Arc<dyn Disk>,
        sizes: Sizes,
        boot_id: [u8; 16],
        reading: Reading,
    ) -> Result<RecoveredStore, OpenError> {
        match manifest::read(disk.as_ref())? {
            None => Store::create(disk, sizes, boot_id, reading),
            Some(manifest) => Store::recover(disk, sizes, boot_id, reading, manifest),
        }
    }

    fn create(
        disk: Arc<dyn Disk>,
        sizes: Sizes,
        boot_id: [u8; 16],
        reading: Reading,
    ) -> Result<RecoveredStore, OpenError> {
        remove_unlisted(
            disk.as_ref(),
            &Manifest { first_segment: u64::MAX, ..Manifest::default() },
        )?;
        let clock = SteadyClock::begin(reading);
        let now = clock.now(reading);
        let mem = Memtable::new(sizes.memtable_bytes, 1);
        let timeline = DiskTimeline::new(Sources::new(mem, Vec::new(), Frontiers::default()));
        let mut machine = Machine::new(timeline);
        machine.set_zones(jiff::tz::db().clone());
        let mut store = Store::new(disk, sizes, machine, saved(boot_id, reading, now));
        store.manifest = Manifest {
            store_id: store_id(boot_id, reading),
            created_ms: reading.wall_ms,
            first_segment: 1,
            checkpoint: None,
            runs: Vec::new(),
        };
        store.segment = 1;
        store.push_checkpoint_head(now);
        let writer = store.write_first_batch(now)?;
        manifest::write(store.disk.as_ref(), &store.manifest)?;
        Ok(RecoveredStore { store, writer, clock })
    }

    fn recover(
        disk: Arc<dyn Disk>,
        sizes: Sizes,
        boot_id: [u8; 16],
        reading: Reading,
        manifest: Manifest,
    ) -> Result<RecoveredStore, OpenError> {
        settle(disk.as_ref(), manifest.first_segment)?;
        let plan = plan(disk.as_ref(), manifest.first_segment)?;
        let runs = open_runs(&disk, &manifest.runs)?;
        // The checkpoint, which replay meets first, knows the next id.
        let mem = Memtable::new(sizes.memtable_bytes, 1);
        let sources = Sources::new(mem, runs, Frontiers::default());
        let mut machine = Machine::new(DiskTimeline::new(sources));
        let replayed = replay(disk.as_ref(), &plan, manifest.checkpoint, sizes, &mut machine)?;
        complete_stubs(&mut machine)?;
        // The replayed arrivals are in the journal already.
        drop(machine.timeline_mut().sources.mem.take_arrivals());
        remove_unlisted(disk.as_ref(), &manifest)?;

        let clock = SteadyClock::resume(replayed.saved, boot_id, reading);
        let now = clock.now(reading);
        machine.set_epoch(replayed.epoch + 1);
        machine.set_zones(jiff::tz::db().clone());
        let mut store = Store::new(disk, sizes, machine, saved(boot_id, reading, now));
        store.next_run = next_run(replayed.next_run, &manifest.runs);
        store.run_files = manifest.runs.iter().map(|run| run.no).collect();
        store.manifest = manifest;
        store.segment = plan.next_segment;
        store.segments = plan.stretches.iter().map(|part| (part.segment, part.bytes)).collect();
        // The next start should not have to read all of it again.
        store.checkpoint_bytes = replayed.checkpoint_bytes;
        let bytes: u64 = store.segments.values().sum();
        store.journal_bytes = bytes.saturating_sub(replayed.inline_bytes);
        store.journal_records = replayed.facts;
        store.batch = plan.last.number + 1;
        store.push_boot(plan.last.number, now)?;
        let writer = store.write_first_batch(now)?;
        Ok(RecoveredStore { store, writer, clock })
    }

    fn new(
        disk: Arc<dyn Disk>,
        sizes: Sizes,
        machine: Machine<DiskTimeline>,
        boot: SavedClock,
    ) -> Store {
        Store {
            disk,
            sizes,
            machine,
            out: Output::default(),
            watched: false,
            events: Vec::new(),
            builder: BatchBuilder::new(),
            batch: 1,
            segment: 1,
            journal_bytes: 0,
            journal_records: 0,
            ticked_at: boot.steady_ms,
            changed_at: boot.steady_ms,
            frozen_at: boot.steady_ms,
            checkpoint_bytes: 0,
            segments: BTreeMap::new(),
            space_checked_at: None,
            synced: 0,
            flushes: Default::default(),
            merge: None,
            run_notes: Default::default(),
            manifest: Manifest::default(),
            next_run: 1,
            run_files: BTreeSet::new(),
            leftovers: Default::default(),
            backups_wanted: Vec::new(),
            backups_due: Default::default(),
            flush_busy: false,
            wall_ahead_ms: boot.wall_ms.wrapping_sub(boot.steady_ms) as i64,
            boot,
        }
    }

    /// The first records of a start: its epoch, the batch it builds on, and the release of leases
    /// that belonged to sessions.
    fn push_boot(&mut self, last_batch: u64, now: Now) -> Result<(), Fatal> {
        self.builder.push(&Record::Boot(Boot {
            epoch: self.machine.epoch(),
            last_batch,
            boot_id: self.boot.boot_id,
            boottime_ms: self.boot.boottime_ms,
            steady_ms: self.boot.steady_ms,
            wall_ms: self.boot.wall_ms,
        }));
        self.machine.recovered(now, &mut self.out)?;
        self.collect(now);
        Ok(())
    }

    /// No answer leaves before the first batch, which carries the new epoch, is synced.
    fn write_first_batch(&mut self, now: Now) -> Result<SegmentWriter, Damage> {
        let mut writer = SegmentWriter::create(self.disk.as_ref(), self.segment)?;
        let mut batch = self.seal_records();
        let synced_before = batch.number - 1;
        writer.write(&mut batch, synced_before, now.steady_ms, now.wall_ms)?;
        writer.sync()?;
        self.recycle(batch.into_bytes());
        self.set_synced(self.last_sealed());
        self.set_durable(self.last_sealed());
        self.check_space();
        Ok(writer)
    }
}

fn saved(boot_id: [u8; 16], reading: Reading, now: Now) -> SavedClock {
    SavedClock {
        boot_id,
        boottime_ms: reading.boottime_ms,
        steady_ms: now.steady_ms,
        wall_ms: now.wall_ms,
    }
}

/// Two stores made at different times or on different boots have different ids.
fn store_id(boot_id: [u8; 16], reading: Reading) -> [u8; 16] {
    let time = u128::from(reading.wall_ms) << 64 | u128::from(reading.boottime_ms);
    (u128::from_be_bytes(boot_id) ^ time.rotate_left(17)).to_be_bytes()
}

fn open_runs(disk: &Arc<dyn Disk>, runs: &[RunRef]) -> Result<Vec<OpenRun>, Damage> {
    let open = |run: &RunRef| {
        let run = Arc::new(open_run(disk, run)?);
        Ok(OpenRun::new(run, 0))
    };
    runs.iter().map(open).collect()
}

/// Opens the run that the manifest names.
pub(crate) fn open_run(disk: &Arc<dyn Disk>, run: &RunRef) -> Result<Run, Damage> {
    let opened = Run::open(disk, &run.name())?;
    let meta = opened.meta();
    if (meta.no, meta.age) != (run.no, run.age) {
        let what = format!("it is run {} of age {}", meta.no, meta.age);
        return Err(Damage::corrupt(&run.name(), 0, what));
    }
    Ok(opened)
}

/// Jobs that replay knew only by the place they left get their content from the runs.
fn complete_stubs(machine: &mut Machine<DiskTimeline>) -> Result<(), Fatal> {
    let stubs = machine.leased_stubs();
    for (id, content) in machine.timeline_mut().stub_contents(&stubs)? {
        machine.complete_leased(id, content);
    }
    machine.timeline_mut().complete_stubs()
}

/// Numbers of runs are never given again, also those of flushes and merges that were cut short.
fn next_run(from_checkpoint: u64, runs: &[RunRef]) -> u64 {
    runs.iter().map(|run| run.no + 1).max().unwrap_or(0).max(from_checkpoint)
}

/// Removes our files that the manifest does not name: remains of work that a crash cut short.
fn remove_unlisted(disk: &dyn Disk, manifest: &Manifest) -> Result<(), Damage> {
    let failed = |source| Damage::io("data directory", source);
    for name in disk.list().map_err(failed)? {
        let is_old_segment =
            segment_number(&name).is_some_and(|segment| segment < manifest.first_segment);
        let is_other_run =
            run_number(&name).is_some_and(|no| manifest.runs.iter().all(|run| run.no != no));
        let is_other_checkpoint =
            checkpoint_number(&name).is_some_and(|number| manifest.checkpoint != Some(number));
        // Temporary files of runs and their spills begin with the run's name.
        let is_temporary =
            name.starts_with("run-") && name.contains(".dmr.") || checkpoint::is_temporary(&name);
        if is_old_segment || is_other_run || is_other_checkpoint || is_temporary {
            disk.remove(&name).map_err(|source| Damage::io(&name, source))?;
        }
    }
    Ok(())
}
