//! Judges how a store handles a damaged disk.

use dormouse_core::time::Now;
use dormouse_disk::journal::segment_number;
use dormouse_disk::manifest;

use crate::harness::disk::driver::Driver;
use crate::harness::disk::simulation::{SIZES, World};
use crate::oracle::{compare, compare_next};

/// How a damaged disk was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The store did not open, or stopped at the damage, and named the file.
    Refused,
    /// It opened in the state at the end of this batch, all of it right.
    Right(u64),
}

impl World {
    /// The last batch.
    pub fn last_batch(&self) -> u64 {
        self.sealed
    }

    /// Opens the store on the disk as it is now and reads everything. An error is a wrong answer,
    /// or damage blamed on something else than this file.
    pub fn judge(&self, damaged: &str) -> Result<Verdict, String> {
        let before = self.disk.names();
        let mut driver = match Driver::open(&self.disk, SIZES, self.time) {
            Ok(driver) => driver,
            Err(error) => {
                let gone = before.iter().find(|name| !self.disk.names().contains(name));
                return match gone {
                    Some(name) => Err(format!("{name} was removed, then: {error}")),
                    None => blames(&error.to_string(), damaged),
                };
            }
        };
        let manifest = manifest::read(&self.disk).map_err(|error| error.to_string())?;
        let first_segment = manifest.ok_or("the manifest is gone")?.first_segment;
        let starts = self.starts_after(first_segment, self.oracle.machine.epoch())?;
        let Some((header, boot)) = starts.last() else {
            return Err("there is no new start in the journal".to_owned());
        };
        let fraction = self.time.reading.into_ms_us > 0;
        let now = Now { steady_ms: header.steady_ms, wall_ms: header.wall_ms, fraction };
        let mut oracle = self.oracle.fork();
        oracle.recover(first_segment, boot.last_batch, boot.epoch, now)?;
        let read = compare(&mut driver.store, &mut oracle, now, &self.known())
            .and_then(|()| compare_next(&mut driver.store, &mut oracle, now));
        match read {
            Ok(()) => Ok(Verdict::Right(boot.last_batch)),
            Err(what) => blames(&what, damaged),
        }
    }
}

/// An error that names the file is right; everything else is a wrong answer. Jobs missing from
/// a segment may show only in the next one.
fn blames(what: &str, damaged: &str) -> Result<Verdict, String> {
    let is_answer = what.contains(", should be");
    let of_journal = segment_number(damaged).is_some() && what.contains("journal-");
    if !is_answer && (what.contains(damaged) || of_journal) {
        return Ok(Verdict::Refused);
    }
    Err(what.to_owned())
}
