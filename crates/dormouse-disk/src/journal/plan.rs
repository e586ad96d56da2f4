//! Decides which batches are good, before any of them is applied.

use super::boot::Boot;
use super::header::BatchHeader;
use super::record::{BOOT, CHECKPOINT, Record};
use super::segment::{segment_name, segments};
use super::window::{Batch, Window};
use crate::codec::Reader;
use crate::damage::Damage;
use crate::disk::Disk;

/// The good batches of a journal and where they end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where the good batches stand, in order.
    pub stretches: Vec<SegmentPrefix>,
    /// The last good batch.
    pub last: BatchHeader,
    /// Whether the last good batch ended with a clean stop.
    pub sealed: bool,
    /// The number for the next segment: higher than that of any file there is, good or not.
    pub next_segment: u64,
    /// All segments that were read: they are synced before anything is built on them.
    pub segments_read: Vec<u64>,
    /// Remains of a power cut behind the last good batch.
    pub torn: Option<TornBatch>,
}

/// The good batches of one segment: always its first ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentPrefix {
    /// The segment.
    pub segment: u64,
    /// Number of the batch at its beginning.
    pub first_batch: u64,
    /// Number of the last good batch in it.
    pub last_batch: u64,
    /// Where that one ends.
    pub bytes: u64,
}

/// The first batch that was not written whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornBatch {
    /// Its number.
    pub batch: u64,
    /// Its file.
    pub file: String,
    /// Where it begins, or should.
    pub offset: u64,
    /// The damage.
    pub what: String,
}

/// Reads every segment from `first_segment` on, which begins with the head of the checkpoint that
/// the manifest names, and tells a torn tail from corruption.
pub fn plan(disk: &dyn Disk, first_segment: u64) -> Result<Plan, Damage> {
    let all = segments(disk)?;
    let newest = all.last().copied().unwrap_or(0).max(first_segment);
    let segments_read: Vec<u64> = all.into_iter().filter(|no| *no >= first_segment).collect();
    if segments_read.first() != Some(&first_segment) {
        let what = "the manifest names it as the first segment, but the file is not there";
        return Err(Damage::corrupt(&segment_name(first_segment), 0, what));
    }
    let mut planner = Planner::default();
    for segment in &segments_read {
        planner.read_segment(&mut Window::open(disk, *segment)?)?;
        if planner.last.is_none() {
            // Else the checkpoint of a later segment would be taken for this one.
            return Err(checkpoint_missing(&segment_name(*segment), "the file is empty"));
        }
    }
    let Some(last) = planner.last else {
        return Err(checkpoint_missing(&segment_name(first_segment), "the file is empty"));
    };
    Ok(Plan {
        stretches: planner.stretches,
        last,
        sealed: ends_sealed(disk, &last)?,
        next_segment: newest.saturating_add(1),
        segments_read,
        torn: planner.torn,
    })
}

/// Makes the segments equal to what the drive holds, before they are read. Data that a killed
/// process left in the page cache becomes durable, so that no power cut can take away what this
/// start builds on; data that an earlier sync failed to write is no longer shown. File names may be
/// in the cache only, too.
pub fn settle(disk: &dyn Disk, first_segment: u64) -> Result<(), Damage> {
    for segment in segments(disk)?.into_iter().filter(|no| *no >= first_segment) {
        let name = segment_name(segment);
        let settled = disk.open(&name).and_then(|file| {
            file.sync()?;
            file.forget_cached()
        });
        settled.map_err(|source| Damage::io(&name, source))?;
    }
    disk.sync_dir().map_err(|source| Damage::io("data directory", source))
}

#[derive(Default)]
struct Planner {
    stretches: Vec<SegmentPrefix>,
    last: Option<BatchHeader>,
    /// Set from the first damage on, until a segment says that it was built on the batch before it.
    torn: Option<TornBatch>,
}

impl Planner {
    fn read_segment(&mut self, window: &mut Window) -> Result<(), Damage> {
        let mut offset = 0;
        while offset < window.len {
            match window.batch(offset)? {
                Batch::Good(header) => {
                    self.read_batch(window, &header)?;
                    offset = header.end();
                }
                // Room for batches that were never written.
                Batch::Bad(_) if window.is_zero_from(offset)? => return Ok(()),
                Batch::Bad(what) => {
                    self.damage(&window.name, offset, what)?;
                    return self.read_claims(window, offset);
                }
            }
        }
        Ok(())
    }

    /// A batch that is whole; whether it is good depends on the batches before it.
    fn read_batch(&mut self, window: &mut Window, header: &BatchHeader) -> Result<(), Damage> {
        if header.offset == 0 {
            self.read_first_batch(window, header)?;
        }
        let expected = self.expected(header);
        if self.torn.is_none() && header.number != expected {
            let what = format!("batch {expected} is missing, {} stands here", header.number);
            self.damage(&window.name, header.offset, &what)?;
        }
        if self.torn.is_some() {
            return self.check_claim(window, header);
        }
        self.add(header);
        Ok(())
    }

    /// The first batch of a segment: the head of a checkpoint to begin with, or a start that names
    /// what it built on.
    fn read_first_batch(
        &mut self,
        window: &mut Window,
        header: &BatchHeader,
    ) -> Result<(), Damage> {
        let records = window.records(header)?;
        let mut reader = Reader::new(records);
        match (reader.byte(), self.last) {
            (Some(CHECKPOINT), Some(last)) if header.number == last.number + 1 => {
                // It goes on where the segment before it ended: what stands there is no batch.
                self.torn = None;
                Ok(())
            }
            (Some(CHECKPOINT), _) => Ok(()),
            (_, None) => Err(checkpoint_missing(&window.name, "it begins with another record")),
            (Some(BOOT), Some(last)) => match Boot::decode(&mut reader) {
                Some(boot) => self.read_boot(window, header, &last, &boot),
                None => {
                    let what = "the record of a start cannot be read";
                    Err(Damage::corrupt(&window.name, header.records_at(), what))
                }
            },
            _ => Ok(()),
        }
    }

    fn read_boot(
        &mut self,
        window: &Window,
        header: &BatchHeader,
        last: &BatchHeader,
        boot: &Boot,
    ) -> Result<(), Damage> {
        if boot.last_batch != last.number || header.number != last.number + 1 {
            // If a batch before this one is damaged, that is the place to look at.
            let (file, offset) = match &self.torn {
                Some(torn) => (torn.file.clone(), torn.offset),
                None => (window.name.clone(), 0),
            };
            let what = format!(
                "the last good batch before {} is {}, but the start that wrote it (as batch {}) \
                 was built on batch {}",
                window.name, last.number, header.number, boot.last_batch
            );
            return Err(Damage::corrupt(&file, offset, what));
        }
        self.torn = None;
        Ok(())
    }

    /// Notes where the good batches end.
    ///
    /// Later damage at the head of another segment moves the place, not the number: the harmless
    /// torn end of a segment is known already when the one that was built on it proves damaged.
    fn damage(&mut self, file: &str, offset: u64, what: &str) -> Result<(), Damage> {
        let Some(last) = &self.last else {
            return Err(checkpoint_missing(file, what));
        };
        let what = match &self.torn {
            None => what.to_owned(),
            Some(_) if offset > 0 => return Ok(()),
            Some(before) => {
                format!("{what}; {} has damage at byte {} too", before.file, before.offset)
            }
        };
        self.torn = Some(TornBatch { batch: last.number + 1, file: file.to_owned(), offset, what });
        Ok(())
    }

    /// Reads the headers behind damage.
    fn read_claims(&mut self, window: &mut Window, mut from: u64) -> Result<(), Damage> {
        while let Some(header) = window.next_header(from)? {
            self.check_claim(window, &header)?;
            // Bytes within a whole batch are a body, whatever they look like.
            from = match window.batch(header.offset)? {
                Batch::Good(_) => header.end(),
                Batch::Bad(_) => header.offset + 1,
            };
        }
        Ok(())
    }

    /// Whether this header says that the torn batch was synced.
    fn check_claim(&self, window: &Window, header: &BatchHeader) -> Result<(), Damage> {
        match &self.torn {
            Some(torn) if header.synced_no >= torn.batch => {
                let what = format!(
                    "{}; it should be batch {}, and batch {} ({} at byte {}) says that it was \
                     synced",
                    torn.what, torn.batch, header.number, window.name, header.offset
                );
                Err(Damage::corrupt(&torn.file, torn.offset, what))
            }
            _ => Ok(()),
        }
    }

    /// The number that the next good batch must have.
    fn expected(&self, header: &BatchHeader) -> u64 {
        self.last.map_or(header.number, |last| last.number.saturating_add(1))
    }

    fn add(&mut self, header: &BatchHeader) {
        self.last = Some(*header);
        if header.offset == 0 {
            self.stretches.push(SegmentPrefix::of(header));
        } else if let Some(stretch) = self.stretches.last_mut() {
            stretch.last_batch = header.number;
            stretch.bytes = header.end();
        }
    }
}

impl SegmentPrefix {
    fn of(header: &BatchHeader) -> SegmentPrefix {
        SegmentPrefix {
            segment: header.segment,
            first_batch: header.number,
            last_batch: header.number,
            bytes: header.end(),
        }
    }
}

fn checkpoint_missing(file: &str, what: &str) -> Damage {
    let what = format!("{what}: the checkpoint that the manifest names is not there");
    Damage::corrupt(file, 0, what)
}

fn ends_sealed(disk: &dyn Disk, last: &BatchHeader) -> Result<bool, Damage> {
    let mut window = Window::open(disk, last.segment)?;
    let mut reader = Reader::new(window.records(last)?);
    let mut newest = None;
    while let Some(record) = Record::decode(&mut reader) {
        newest = Some(record);
    }
    // A record that cannot be read is replay's to report.
    Ok(reader.is_empty() && newest == Some(Record::Seal))
}
