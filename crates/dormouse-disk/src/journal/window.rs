//! Reads a segment piece by piece: memory stays small however long the segment is.

use std::sync::Arc;

use super::header::{BatchHeader, FORMAT, HEADER_BYTES, HeaderCheck, MAGIC};
use super::segment::segment_name;
use crate::damage::Damage;
use crate::disk::{Disk, File};

/// Bytes read at once; a batch that is longer is read whole.
const CHUNK_BYTES: u64 = 1 << 20;

/// A view into one segment.
pub(super) struct Window {
    pub(super) segment: u64,
    pub(super) name: String,
    /// The segment's length when it was opened: later writes are not read.
    pub(super) len: u64,
    file: Arc<dyn File>,
    start: u64,
    bytes: Vec<u8>,
}

/// The content at an offset.
pub(super) enum Batch {
    Good(BatchHeader),
    /// The reason why it cannot be used.
    Bad(&'static str),
}

impl Window {
    pub(super) fn open(disk: &dyn Disk, segment: u64) -> Result<Window, Damage> {
        let name = segment_name(segment);
        let file = disk.open(&name).map_err(|source| Damage::io(&name, source))?;
        let len = file.len().map_err(|source| Damage::io(&name, source))?;
        Ok(Window { segment, name, len, file, start: 0, bytes: Vec::new() })
    }

    /// Looks at the batch that begins here and checks all of it.
    pub(super) fn batch(&mut self, offset: u64) -> Result<Batch, Damage> {
        let header = match self.header(offset)? {
            Ok(header) => header,
            Err(what) => return Ok(Batch::Bad(what)),
        };
        if header.end() > self.len {
            return Ok(Batch::Bad("the file ends within a batch"));
        }
        if crc32c::crc32c(self.records(&header)?) != header.records_crc {
            return Ok(Batch::Bad("the checksum of the records does not fit"));
        }
        Ok(Batch::Good(header))
    }

    /// The records of a batch whose end lies within the segment.
    pub(super) fn records(&mut self, header: &BatchHeader) -> Result<&[u8], Damage> {
        self.bytes_at(header.records_at(), header.records_bytes)
    }

    /// The next whole header at or after this offset, wherever it begins: behind damage no length
    /// can be trusted.
    pub(super) fn next_header(&mut self, mut from: u64) -> Result<Option<BatchHeader>, Damage> {
        while from + HEADER_BYTES as u64 <= self.len {
            let piece = self.piece(from)?;
            match piece.iter().position(|byte| *byte == MAGIC[0]) {
                None => from += piece.len() as u64,
                Some(skipped) => {
                    from += skipped as u64;
                    if let Ok(header) = self.header(from)? {
                        return Ok(Some(header));
                    }
                    from += 1;
                }
            }
        }
        Ok(None)
    }

    /// Whether nothing but zeros follows.
    pub(super) fn is_zero_from(&mut self, mut from: u64) -> Result<bool, Damage> {
        while from < self.len {
            let piece = self.piece(from)?;
            if piece.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            from += piece.len() as u64;
        }
        Ok(true)
    }

    /// The bytes from here on that are at hand, at least one.
    fn piece(&mut self, from: u64) -> Result<&[u8], Damage> {
        self.bytes_at(from, 1)?;
        Ok(&self.bytes[(from - self.start) as usize..])
    }

    fn header(&mut self, offset: u64) -> Result<Result<BatchHeader, &'static str>, Damage> {
        let segment = self.segment;
        let available = self.len.saturating_sub(offset).min(HEADER_BYTES as u64);
        match BatchHeader::find(self.bytes_at(offset, available)?, segment, offset) {
            HeaderCheck::Header(header) => Ok(Ok(header)),
            HeaderCheck::Nothing(what) => Ok(Err(what)),
            HeaderCheck::Newer(found) => {
                Err(Damage::Newer { file: self.name.clone(), found, known: FORMAT })
            }
        }
    }

    /// These bytes, which lie within the segment.
    fn bytes_at(&mut self, offset: u64, len: u64) -> Result<&[u8], Damage> {
        let held = self.start..self.start + self.bytes.len() as u64;
        if offset < held.start || offset + len > held.end {
            self.fill(offset, len)?;
        }
        let from = (offset - self.start) as usize;
        Ok(&self.bytes[from..from + len as usize])
    }

    fn fill(&mut self, offset: u64, len: u64) -> Result<(), Damage> {
        let wanted = len.max(CHUNK_BYTES.min(self.len - offset)) as usize;
        if self.bytes.capacity() > wanted.max(4 * CHUNK_BYTES as usize) {
            self.bytes = Vec::new();
        }
        self.bytes.resize(wanted, 0);
        self.start = offset;
        let filled = self.file.read_at(offset, &mut self.bytes);
        filled.map_err(|source| Damage::io(&self.name, source))
    }
}
