//! Hands out the records of the good batches.

use super::header::BatchHeader;
use super::plan::{Plan, SegmentPrefix};
use super::record::Record;
use super::window::{Batch, Window};
use crate::codec::Reader;
use crate::damage::Damage;
use crate::disk::Disk;

/// Gets every record with the header of its batch.
type Visit<'f> = &'f mut dyn FnMut(&BatchHeader, Record) -> Result<(), Damage>;

impl Plan {
    /// Calls `visit` for every record of every good batch, in order, until it answers an error.
    pub fn replay(&self, disk: &dyn Disk, visit: Visit<'_>) -> Result<(), Damage> {
        for stretch in &self.stretches {
            replay_stretch(disk, stretch, visit)?;
        }
        Ok(())
    }
}

fn replay_stretch(
    disk: &dyn Disk,
    stretch: &SegmentPrefix,
    visit: Visit<'_>,
) -> Result<(), Damage> {
    let mut window = Window::open(disk, stretch.segment)?;
    let mut offset = 0;
    while offset < stretch.bytes {
        // Checked again: a batch that was good when the plan was made may have gone bad since.
        let header = match window.batch(offset)? {
            Batch::Good(header) => header,
            Batch::Bad(what) => return Err(Damage::corrupt(&window.name, offset, what)),
        };
        replay_batch(&mut window, &header, visit)?;
        offset = header.end();
    }
    Ok(())
}

fn replay_batch(window: &mut Window, header: &BatchHeader, visit: Visit<'_>) -> Result<(), Damage> {
    let mut reader = Reader::new(window.records(header)?);
    while !reader.is_empty() {
        let at = header.end() - reader.len() as u64;
        let Some(record) = Record::decode(&mut reader) else {
            let what = format!("a record of batch {} cannot be read", header.number);
            return Err(Damage::corrupt(&window.name, at, what));
        };
        visit(header, record)?;
    }
    Ok(())
}
