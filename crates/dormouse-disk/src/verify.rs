//! Reads a whole store and reports every damage. Changes nothing.

use std::path::Path;
use std::sync::Arc;

use crate::checkpoint;
use crate::damage::Damage;
use crate::disk::Disk;
use crate::journal;
use crate::lock::{DirError, open_dir};
use crate::manifest;
use crate::run::Run;
use crate::store::open_run;

/// The contents of a store, and its damage.
#[derive(Debug, Default)]
pub struct Report {
    /// Every damage found, each with file and offset; empty = the store is sound.
    pub damages: Vec<Damage>,
    /// Runs read.
    pub runs: u64,
    /// Entries in them, consumed ones and tombstones included.
    pub entries: u64,
    /// Bytes of runs, checkpoint and journal.
    pub bytes: u64,
    /// Batches of the journal.
    pub batches: u64,
    /// Where the journal ends in a batch that a crash cut short; that is no damage.
    pub torn: Option<journal::TornBatch>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.damages.is_empty()
    }
}

/// Checks the store in a directory that no process has open.
pub fn verify_dir(dir: &Path) -> Result<Report, DirError> {
    let (disk, _lock) = open_dir(dir)?;
    let disk: Arc<dyn Disk> = Arc::new(disk);
    Ok(verify(&disk))
}

/// Checks every byte that the manifest names.
pub fn verify(disk: &Arc<dyn Disk>) -> Report {
    let mut report = Report::default();
    let manifest = match manifest::read(disk.as_ref()) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => return report,
        Err(damage) => {
            report.damages.push(damage);
            return report;
        }
    };
    let mut head = None;
    match journal::verify(disk.as_ref(), manifest.first_segment) {
        Ok(found) => {
            head = found.head;
            report.batches = found.batches;
            report.bytes += found.bytes;
            report.torn = found.torn;
        }
        Err(damage) => report.damages.push(damage),
    }
    if let Some(number) = manifest.checkpoint {
        match checkpoint::read(disk.as_ref(), number, head.as_ref(), &mut |_| {}) {
            Ok(bytes) => report.bytes += bytes,
            Err(damage) => report.damages.push(damage),
        }
    }
    for run in &manifest.runs {
        match verify_run(disk, run) {
            Ok(found) => {
                report.runs += 1;
                report.entries += found.meta().entries;
                report.bytes += found.meta().bytes;
            }
            Err(damage) => report.damages.push(damage),
        }
    }
    report
}

fn verify_run(disk: &Arc<dyn Disk>, run: &manifest::RunRef) -> Result<Run, Damage> {
    let found = open_run(disk, run)?;
    found.verify()?;
    Ok(found)
}
