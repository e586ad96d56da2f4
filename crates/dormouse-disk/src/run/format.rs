//! The layout of a run file, format 2. All numbers are little-endian.
//!
//! ```text
//! header  data blocks  blocks table  lanes table  ids table  keys table  filter  samples  footer
//! 32 B    data_bytes   ---------------- in this order, no gaps ----------------  2068 B   112 B
//! ```
//!
//! **Frame.** Header (from byte 8), blocks, pages, samples and footer are frames: a CRC32C (u32),
//! then bytes. The checksum covers the run number (u64), the frame's offset in the file (u64) and
//! the bytes after the checksum, so that a frame in the wrong place or of another run is never
//! taken.
//!
//! **Header** (never changes in later formats):
//! ```text
//!  0  8  magic "dormrun>"
//!  8  4  CRC32C
//! 12  4  format
//! 16  8  run number
//! 24  8  age
//! ```
//!
//! **Data block**, about 16 KiB, or one entry that is larger, at most 4 MiB:
//! ```text
//!  0  4  CRC32C
//!  4  4  meta_len
//!  8  4  data_len
//! 12  4  entries, 1 to 32767
//! 16  meta_len  the entries without their payloads, one after the other
//!     data_len  the payloads, one after the other
//! ```
//! An entry in meta (varint is LEB128, zigzag a signed varint):
//! ```text
//! tag      1 byte  0x01 lane is given   0x02 job, else tombstone
//!                  0x0c weight: 0 is +1, 1 is 0, 2 is -1, 3 is given   0xf0 zero
//! topic    varint  if 0x01
//! class    varint  if 0x01
//! due_at   varint  if 0x01, else the distance to the previous entry's
//! id       varint  if 0x01, else zigzag: the difference to the previous entry's, wrapping
//! weight   zigzag  if 0x0c
//! length   varint  of the payload, if 0x02
//! ```
//! The first entry of a block gives its lane; so does the first of a lane.
//!
//! **Page.** Tables and filter are fixed-width records in pages of 4096 bytes: CRC32C, as many
//! whole records as fit, zeros. The last page ends after its last record. How many records
//! there are says the footer.
//!
//! **Table**: the pages of its records, sorted; then the pages of its fences, which are the keys of
//! the first records of every n-th page, n = 1 for up to 1,048,576 pages, else the smallest with
//! at most so many fences.
//! ```text
//! blocks  45 B  place (topic 4, class 5, due_at 8, id 8) of the first entry = key
//!               weight 8, signed: of that entry's lane before this block
//!               offset 8, length 4: of the block in the file
//! lanes   31 B  topic 4, class 5 = key
//!               block 4, index 2: its first entry;  entries 8;  weight 8, signed: of all of them
//! ids     14 B  id 8 = key;  block 4;  index in the block 2, with bit 15 set for a key hold
//! keys    16 B  hash 8 = key, with bit 0 set for a key hold;  id 8
//! ```
//! A key's hash is XXH3-64 of the key, bit 0 cleared; its seed is the low 64 bits of the topic
//! number times 0x9e3779b97f4a7c15.
//!
//! **Filter**: lines of 64 bytes (8 numbers of 8 bytes). A hash belongs to the line
//! `(hash * lines) >> 64` and sets six bits of its 512: with `m = hash * 0x9e3779b97f4a7c15` (the
//! low 64 bits) the bits `m >> 10 + 9 * k & 511`, k = 0 to 5; bit b is bit `b % 64` of number
//! `b / 64`.
//!
//! **Samples**: of the ids of jobs, then of tombstones, each: the number of ids (u64, at most 128),
//! the ids ascending (u64 each), zeros. Format 1 has no samples.
//!
//! **Footer** (the last 12 bytes never change in later formats):
//! ```text
//!   0  4  CRC32C
//!   4  8  run number
//!  12  8  age
//!  20  8  entries; also the records of the ids table
//!  28  8  tombstones
//!  36  8  entries with a key; also the records of the keys table
//!  44  8  weight of all entries, signed
//!  52  8  smallest id
//!  60  8  largest id
//!  68  8  data_bytes
//!  76  8  blocks
//!  84  8  lanes
//!  92  8  filter lines
//! 100  4  format
//! 104  8  magic "<dormrun"
//! ```
//! The offsets of the sections follow from these numbers, so they cannot contradict them; together
//! the sections must be exactly as long as the file.
//!
//! **Versions.** A reader refuses a format above its own ([`Damage::Newer`]) and reads all below.

use crate::codec::Reader;
use crate::damage::Damage;

use super::RunMeta;
use super::file::Source;
use super::filter::FilterLine;
use super::page::bytes_for;
use super::record::{BlockRecord, IdRecord, KeyRecord, LaneRecord};
use super::sample::IdSamples;
use super::table::table_bytes;

/// The newest format this version reads, and the one it writes.
pub(super) const FORMAT: u32 = 2;
/// The first format with samples.
const FORMAT_SAMPLES: u32 = 2;
/// Bytes of the header; data blocks follow.
pub(super) const HEADER_BYTES: u64 = 32;
/// Bytes of the footer.
pub(super) const FOOTER_BYTES: u64 = 112;
/// Bytes of a frame's checksum.
pub(super) const CRC_BYTES: usize = 4;
/// Bytes of the samples' frame.
pub(super) const SAMPLES_BYTES: u64 = (CRC_BYTES + IdSamples::BYTES) as u64;

/// The first bytes of a run file.
pub(super) const MAGIC_HEAD: [u8; 8] = *b"dormrun>";
/// The last bytes of a run file.
const MAGIC_TAIL: [u8; 8] = *b"<dormrun";

/// The checksum of a frame's bytes in its place.
pub(super) fn checksum(no: u64, offset: u64, parts: &[&[u8]]) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&no.to_le_bytes());
    place[8..].copy_from_slice(&offset.to_le_bytes());
    parts.iter().fold(crc32c::crc32c(&place), |crc, part| crc32c::crc32c_append(crc, part))
}

/// The whole header.
pub(super) fn header(no: u64, age: u64) -> Vec<u8> {
    let mut fields = Vec::with_capacity(20);
    fields.extend_from_slice(&FORMAT.to_le_bytes());
    fields.extend_from_slice(&no.to_le_bytes());
    fields.extend_from_slice(&age.to_le_bytes());
    let mut header = MAGIC_HEAD.to_vec();
    header.extend_from_slice(&checksum(no, MAGIC_HEAD.len() as u64, &[&fields]).to_le_bytes());
    header.extend_from_slice(&fields);
    header
}

/// Run number and age from the header of the file `name`.
pub(super) fn read_header(name: &str, header: &[u8]) -> Result<(u64, u64), Damage> {
    let mut reader = Reader::new(header);
    if reader.array() != Some(MAGIC_HEAD) {
        return Err(Damage::corrupt(name, 0, "this is not a run"));
    }
    let crc = reader.fixed_u32();
    let fields = reader.clone().rest();
    let (Some(crc), Some(format), Some(no), Some(age)) =
        (crc, reader.fixed_u32(), reader.fixed_u64(), reader.fixed_u64())
    else {
        return Err(Damage::corrupt(name, 0, "the header is cut off"));
    };
    if crc != checksum(no, MAGIC_HEAD.len() as u64, &[fields]) {
        return Err(Damage::corrupt(name, 8, "the header's checksum does not fit"));
    }
    check_format(name, format)?;
    Ok((no, age))
}

fn check_format(name: &str, format: u32) -> Result<(), Damage> {
    if format > FORMAT {
        return Err(Damage::Newer { file: name.to_owned(), found: format, known: FORMAT });
    }
    Ok(())
}

/// The numbers at the end of a run.
#[derive(Clone, Debug)]
pub(super) struct Footer {
    pub(super) meta: RunMeta,
    pub(super) data_bytes: u64,
    pub(super) blocks: u64,
    pub(super) filter_lines: u64,
    pub(super) format: u32,
}

impl Footer {
    /// The footer's bytes after its checksum.
    pub(super) fn put(&self) -> Vec<u8> {
        let meta = &self.meta;
        let mut out = Vec::with_capacity(FOOTER_BYTES as usize);
        for number in [
            meta.no,
            meta.age,
            meta.entries,
            meta.tombstones,
            meta.keyed,
            meta.weight.cast_unsigned(),
            meta.min_id,
            meta.max_id,
            self.data_bytes,
            self.blocks,
            meta.lanes,
            self.filter_lines,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.format.to_le_bytes());
        out.extend_from_slice(&MAGIC_TAIL);
        out
    }

    /// Reads the footer of a run of `bytes` bytes whose header said `age`.
    pub(super) fn read(source: &Source, bytes: u64, age: u64) -> Result<Footer, Damage> {
        let offset = bytes.saturating_sub(FOOTER_BYTES);
        let frame = source.read_frame(offset, FOOTER_BYTES as usize)?;
        let footer = Footer::get(source.name(), frame.get(CRC_BYTES..).unwrap_or(&[]), bytes)?
            .ok_or_else(|| source.corrupt(offset, "this is not the footer of a run"))?;
        if footer.meta.no != source.no() || footer.meta.age != age {
            return Err(source.corrupt(offset, "the footer is of another run than the header"));
        }
        Ok(footer)
    }

    fn get(name: &str, fields: &[u8], bytes: u64) -> Result<Option<Footer>, Damage> {
        let mut numbers = [0; 12];
        let mut reader = Reader::new(fields);
        for number in &mut numbers {
            *number = reader.fixed_u64().unwrap_or(0);
        }
        let (Some(format), Some(MAGIC_TAIL)) = (reader.fixed_u32(), reader.array()) else {
            return Ok(None);
        };
        check_format(name, format)?;
        let [no, age, entries, tombstones, keyed, weight, min_id, max_id, ..] = numbers;
        let [.., data_bytes, blocks, lanes, filter_lines] = numbers;
        let weight = weight.cast_signed();
        // The samples are read once the layout is known.
        let samples = None;
        let meta = RunMeta {
            no,
            age,
            entries,
            tombstones,
            keyed,
            lanes,
            weight,
            min_id,
            max_id,
            bytes,
            samples,
        };
        Ok(Some(Footer { meta, data_bytes, blocks, filter_lines, format }))
    }
}

/// Reads the samples, if the run has any.
pub(super) fn read_samples(source: &Source, layout: &Layout) -> Result<Option<IdSamples>, Damage> {
    if layout.samples == layout.footer {
        return Ok(None);
    }
    let frame = source.read_frame(layout.samples, SAMPLES_BYTES as usize)?;
    let samples = IdSamples::get(frame.get(CRC_BYTES..).unwrap_or(&[]));
    samples.map(Some).ok_or_else(|| source.corrupt(layout.samples, "the samples are malformed"))
}

/// Where the sections begin, each being the end of the one before.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) blocks: u64,
    pub(super) lanes: u64,
    pub(super) ids: u64,
    pub(super) keys: u64,
    pub(super) filter: u64,
    pub(super) samples: u64,
    pub(super) footer: u64,
}

impl Layout {
    /// The layout that a footer's numbers give, unless they are beyond all measure.
    pub(super) fn of(footer: &Footer) -> Option<Layout> {
        let meta = &footer.meta;
        let blocks = HEADER_BYTES.checked_add(footer.data_bytes)?;
        let lanes = blocks.checked_add(table_bytes::<BlockRecord>(footer.blocks)?)?;
        let ids = lanes.checked_add(table_bytes::<LaneRecord>(meta.lanes)?)?;
        let keys = ids.checked_add(table_bytes::<IdRecord>(meta.entries)?)?;
        let filter = keys.checked_add(table_bytes::<KeyRecord>(meta.keyed)?)?;
        let samples = filter.checked_add(bytes_for::<FilterLine>(footer.filter_lines)?)?;
        let has_samples = footer.format >= FORMAT_SAMPLES;
        let footer = samples.checked_add(if has_samples { SAMPLES_BYTES } else { 0 })?;
        Some(Layout { blocks, lanes, ids, keys, filter, samples, footer })
    }
}
