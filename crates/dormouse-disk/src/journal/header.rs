//! The fixed bytes in front of a batch's records.

use crate::codec::Reader;

/// Bytes of a batch header.
pub const HEADER_BYTES: usize = 72;
/// The format this version writes, and the newest it reads.
pub(super) const FORMAT: u32 = 1;
/// No text begins like this, and no varint-coded record is likely to.
pub(super) const MAGIC: [u8; 4] = [0x9d, b'D', b'M', b'J'];
/// Where the header's own checksum stands.
const CRC_AT: usize = HEADER_BYTES - 4;

/// The header of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// The segment it stands in.
    pub segment: u64,
    /// Where in the segment.
    pub offset: u64,
    /// The batch's number.
    pub number: u64,
    /// The newest batch known to be synced when this one was written.
    pub synced_no: u64,
    /// Steady clock when it was written.
    pub steady_ms: u64,
    /// Wall clock when it was written.
    pub wall_ms: u64,
    /// Bytes of its records.
    pub records_bytes: u64,
    /// Checksum of its records.
    pub records_crc: u32,
}

/// The result of reading a header at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderCheck {
    Header(BatchHeader),
    /// A whole header of a later format.
    Newer(u32),
    /// No header, or one that belongs elsewhere; with the reason.
    Nothing(&'static str),
}

impl BatchHeader {
    /// Where the next batch of the segment begins.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(HEADER_BYTES as u64).saturating_add(self.records_bytes)
    }

    /// Where its records begin.
    pub(super) fn records_at(&self) -> u64 {
        self.offset + HEADER_BYTES as u64
    }

    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&FORMAT.to_le_bytes());
        let numbers = [
            self.segment,
            self.offset,
            self.number,
            self.synced_no,
            self.steady_ms,
            self.wall_ms,
            self.records_bytes,
        ];
        for (field, number) in bytes[8..64].chunks_exact_mut(8).zip(numbers) {
            field.copy_from_slice(&number.to_le_bytes());
        }
        bytes[64..CRC_AT].copy_from_slice(&self.records_crc.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Looks for the header that belongs at this place.
    pub(super) fn find(bytes: &[u8], segment: u64, offset: u64) -> HeaderCheck {
        if !bytes.starts_with(&MAGIC) {
            return HeaderCheck::Nothing("no batch begins here");
        }
        let (Some(covered), Some(stored_crc)) = (
            bytes.get(..CRC_AT),
            bytes.get(CRC_AT..HEADER_BYTES).and_then(|bytes| Reader::new(bytes).fixed_u32()),
        ) else {
            return HeaderCheck::Nothing("the file ends within a batch header");
        };
        if crc32c::crc32c(covered) != stored_crc {
            return HeaderCheck::Nothing("the checksum of the batch header does not fit");
        }
        let Some((format, header)) = read_fields(covered) else {
            return HeaderCheck::Nothing("the file ends within a batch header");
        };
        if (header.segment, header.offset) != (segment, offset) {
            return HeaderCheck::Nothing("the batch belongs to another place");
        }
        match format {
            FORMAT => HeaderCheck::Header(header),
            0 => HeaderCheck::Nothing("the batch has no format"),
            newer => HeaderCheck::Newer(newer),
        }
    }
}

fn read_fields(covered: &[u8]) -> Option<(u32, BatchHeader)> {
    let mut reader = Reader::new(covered.get(MAGIC.len()..)?);
    let format = reader.fixed_u32()?;
    let header = BatchHeader {
        segment: reader.fixed_u64()?,
        offset: reader.fixed_u64()?,
        number: reader.fixed_u64()?,
        synced_no: reader.fixed_u64()?,
        steady_ms: reader.fixed_u64()?,
        wall_ms: reader.fixed_u64()?,
        records_bytes: reader.fixed_u64()?,
        records_crc: reader.fixed_u32()?,
    };
    Some((format, header))
}
