//! Background work: self-contained, so that it can run on any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dormouse_core::Map;

use super::Store;
use super::backup::Pin;
use super::checkpoint::CheckpointSnapshot;
use super::figures::weigh;
use super::flush::{FlushProgress, Part};
use super::leftovers::Leftovers;
use crate::damage::Damage;
use crate::disk::Disk;
use crate::frontier::Frontiers;
use crate::manifest::{self, Manifest, RunRef, run_name};
use crate::memtable::Memtable;
use crate::run::{KeyFilter, Run, RunWriter, merge};
use crate::timeline::FilterRoom;

/// Work to be done outside the store.
pub struct Task(pub(super) Work);

pub(super) enum Work {
    /// Write a frozen memtable as a run.
    Flush {
        /// The run-to-be.
        run: RunRef,
        /// The memtable to write.
        table: Arc<Memtable>,
        /// Where to tell how far it is.
        progress: Arc<FlushProgress>,
    },
    /// Write a checkpoint.
    Checkpoint(Box<CheckpointSnapshot>),
    /// Make this the manifest.
    Manifest(Manifest),
    /// Remove files, and drop what takes long to drop.
    Remove(Leftovers),
    /// Add a run's keys to a filter over many.
    Cover {
        /// The run.
        run: Arc<Run>,
        /// Where to.
        room: FilterRoom,
    },
    /// Keep the files of a backup from vanishing.
    Backup(Pin),
    /// Merge neighbouring runs.
    Merge {
        /// The output-to-be.
        run: RunRef,
        /// Oldest first.
        inputs: Vec<Arc<Run>>,
        /// The frontiers when the merge began.
        frontiers: Box<Frontiers>,
        /// Set to stop early.
        stop: Arc<AtomicBool>,
    },
    /// Look through runs for jobs of purged topics.
    Weigh {
        /// The runs.
        runs: Vec<Arc<Run>>,
        /// They know which topics were purged.
        frontiers: Box<Frontiers>,
    },
}

/// The result of a task.
pub enum TaskResult {
    /// The run is durable.
    Flushed {
        /// Open for reading.
        run: Arc<Run>,
    },
    /// The checkpoint is durable.
    Checkpoint {
        /// Its number.
        number: u64,
        /// Its bytes.
        bytes: u64,
    },
    /// The manifest is durable.
    Manifest(Manifest),
    /// The files are gone.
    Removed,
    /// The keys of a run are in a filter over many.
    Covered {
        /// The run's number.
        run: u64,
        /// Over its keys and those of others; `None` if its keys could not be read.
        filter: Option<Arc<KeyFilter>>,
    },
    /// The caller that asked for the backup has its answer.
    Backup,
    /// The merge ended; without a run it was given up.
    Merged {
        /// Open for reading.
        run: Option<Arc<Run>>,
    },
    /// The runs were looked through.
    Weighed {
        /// Entries of purged topics, by run.
        purged: Map<u64, u64>,
    },
}

impl Task {
    /// Does the work. An error stops the store.
    pub fn run(self, disk: &Arc<dyn Disk>) -> Result<TaskResult, Damage> {
        match self.0 {
            Work::Flush { run, table, progress } => {
                let mut writer = RunWriter::create(disk, &temporary(run), run.no, run.age)?;
                write_table(&table, &mut writer, progress.run())?;
                writer.finish()?;
                Ok(TaskResult::Flushed { run: publish(disk, run)? })
            }
            Work::Checkpoint(checkpoint) => {
                let (number, bytes) = checkpoint.write(disk.as_ref())?;
                Ok(TaskResult::Checkpoint { number, bytes })
            }
            Work::Manifest(manifest) => {
                manifest::write(disk.as_ref(), &manifest)?;
                Ok(TaskResult::Manifest(manifest))
            }
            Work::Remove(leftovers) => {
                for name in &leftovers.names {
                    remove(disk, name)?;
                }
                Ok(TaskResult::Removed)
            }
            Work::Cover { run, room } => {
                let filter = room.filter();
                // A page that cannot be read stops whoever needs it: that may be nobody.
                let filter = filter.add(&run).is_ok().then_some(filter);
                Ok(TaskResult::Covered { run: run.meta().no, filter })
            }
            Work::Backup(pin) => {
                pin.run();
                Ok(TaskResult::Backup)
            }
            Work::Merge { run, inputs, frontiers, stop } => {
                let merged = merge_runs(disk, run, &inputs, &frontiers, &stop);
                Ok(TaskResult::Merged { run: give_up_if_full(disk, run, merged)? })
            }
            Work::Weigh { runs, frontiers } => {
                Ok(TaskResult::Weighed { purged: weigh(&runs, &frontiers)? })
            }
        }
    }
}

/// Payloads lie in the order they were put and are written in the order of places, so each is a
/// cache miss. Touching some ahead lets the processor fetch them side by side.
const AHEAD: usize = 16;

fn write_table(table: &Memtable, writer: &mut RunWriter, progress: &Part) -> Result<(), Damage> {
    let mut entries = table.iter();
    let mut group = Vec::with_capacity(AHEAD);
    loop {
        group.extend(entries.by_ref().take(AHEAD));
        if group.is_empty() {
            return Ok(());
        }
        let ends = group.iter().filter_map(|(_, _, payload)| {
            payload.map(|bytes| bytes.first().copied().zip(bytes.last().copied()))
        });
        std::hint::black_box(ends.fold(0, |sum: u8, end| {
            let (first, last) = end.unwrap_or((0, 0));
            sum ^ first ^ last
        }));
        progress.note(group.len());
        for (place, weight, payload) in group.drain(..) {
            writer.push(&place, weight, payload)?;
        }
    }
}

fn merge_runs(
    disk: &Arc<dyn Disk>,
    run: RunRef,
    inputs: &[Arc<Run>],
    frontiers: &Frontiers,
    stop: &AtomicBool,
) -> Result<Option<Arc<Run>>, Damage> {
    let mut writer = RunWriter::create(disk, &temporary(run), run.no, run.age)?;
    let unread_from = |topic, class, age| frontiers.bound(topic, class, age);
    let go_on = || !stop.load(Ordering::Relaxed);
    if !merge(inputs, &unread_from, &mut writer, &go_on)? {
        drop(writer);
        remove(disk, &temporary(run))?;
        return Ok(None);
    }
    writer.finish()?;
    publish(disk, run).map(Some)
}

/// A merge is a convenience: without room it is given up and nothing is lost.
fn give_up_if_full(
    disk: &Arc<dyn Disk>,
    run: RunRef,
    merged: Result<Option<Arc<Run>>, Damage>,
) -> Result<Option<Arc<Run>>, Damage> {
    match merged {
        Err(Damage::Io { source, .. }) if is_full(&source) => {
            remove(disk, &temporary(run))?;
            Ok(None)
        }
        other => other,
    }
}

fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

fn temporary(run: RunRef) -> String {
    format!("{}.tmp", run_name(run.no))
}

/// A run that is synced gets its name, durably.
fn publish(disk: &Arc<dyn Disk>, run: RunRef) -> Result<Arc<Run>, Damage> {
    let name = run_name(run.no);
    disk.rename(&temporary(run), &name).map_err(|source| Damage::io(&name, source))?;
    disk.sync_dir().map_err(|source| Damage::io(&name, source))?;
    Ok(Arc::new(Run::open(disk, &name)?))
}

fn remove(disk: &Arc<dyn Disk>, name: &str) -> Result<(), Damage> {
    match disk.remove(name) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Damage::io(name, source))
        }
        _ => Ok(()),
    }
}

impl Store {
    /// Takes the result of a task.
    pub fn finish(&mut self, done: TaskResult) {
        match done {
            TaskResult::Merged { run } => self.finish_merge(run),
            TaskResult::Weighed { purged } => self.run_notes.weighed(purged),
            other => self.finish_flush_task(other),
        }
    }
}
