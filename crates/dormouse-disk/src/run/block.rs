//! Data blocks: entries encoded against their predecessors, decoded all at once.
//!
//! Places, weights and lengths stand before the payloads, so decoding a block walks a thousand
//! bytes and not all sixteen thousand.

use bytes::Bytes;
use dormouse_core::job::JobId;
use dormouse_core::place::{Class, Place};
use dormouse_core::topic::TopicNo;

use crate::codec::{Reader, put_varint, put_zigzag};
use crate::damage::Damage;

use super::file::FileWriter;
use super::format::CRC_BYTES;
use super::record::lane_of;
use super::{Entry, EntryHead, Loc};

/// A block is closed before it would grow beyond this; a larger one has one entry, which is a job.
pub(super) const BLOCK_BYTES_TARGET: usize = 16 << 10;
/// The largest block, which has one entry: larger ones are not read, so a forged length costs no
/// more memory than this.
pub(super) const BLOCK_BYTES_MAX: usize = 4 << 20;
/// Entries of a block: the sixteenth bit of an index is the id table's hold flag.
const ENTRIES_MAX: usize = (1 << 15) - 1;
/// Checksum, two lengths, number of entries.
const HEADER_BYTES: usize = 16;
/// More than an entry without its payload takes: tag, 32-bit topic, 34-bit class, two numbers of 64
/// bits, a weight and a length of 32 bits.
const ENTRY_META_MAX: usize = 1 + 5 + 5 + 10 + 10 + 5 + 5;
/// Less than an entry without its payload takes: tag, due time, id.
const ENTRY_META_MIN: usize = 3;
/// The largest payload.
pub(super) const PAYLOAD_BYTES_MAX: usize = BLOCK_BYTES_MAX - HEADER_BYTES - ENTRY_META_MAX;

const TAG_LANE: u8 = 0x01;
const TAG_JOB: u8 = 0x02;
const TAG_WEIGHT_SHIFT: u8 = 2;
const WEIGHT_GIVEN: u8 = 3;
const TAG_ZERO: u8 = 0xf0;

/// A block that is being filled.
pub(super) struct BlockBuilder {
    meta: Vec<u8>,
    data: Vec<u8>,
    entries: usize,
    previous: Option<Place>,
}

impl BlockBuilder {
    /// An empty block.
    pub(super) fn new() -> BlockBuilder {
        let data = Vec::with_capacity(BLOCK_BYTES_TARGET);
        BlockBuilder { meta: Vec::with_capacity(4 << 10), data, entries: 0, previous: None }
    }

    /// Entries so far.
    pub(super) fn len(&self) -> usize {
        self.entries
    }

    /// Whether an entry with such a payload must go into the next block.
    pub(super) fn is_full_for(&self, payload_len: usize) -> bool {
        let bytes = HEADER_BYTES + self.meta.len() + self.data.len() + ENTRY_META_MAX + payload_len;
        self.entries > 0 && (bytes > BLOCK_BYTES_TARGET || self.entries >= ENTRIES_MAX)
    }

    /// Appends an entry above all others.
    pub(super) fn push(&mut self, place: &Place, weight: i32, payload: Option<&[u8]>) {
        let previous = self.previous.filter(|previous| lane_of(previous) == lane_of(place));
        let weight_code = match weight {
            1 => 0,
            0 => 1,
            -1 => 2,
            _ => WEIGHT_GIVEN,
        };
        let lane = if previous.is_none() { TAG_LANE } else { 0 };
        let job = if payload.is_some() { TAG_JOB } else { 0 };
        self.meta.push(lane | job | weight_code << TAG_WEIGHT_SHIFT);
        if let Some(previous) = previous {
            put_varint(place.due_at - previous.due_at, &mut self.meta);
            put_zigzag(place.id.0.wrapping_sub(previous.id.0).cast_signed(), &mut self.meta);
        } else {
            put_varint(u64::from(place.topic.0), &mut self.meta);
            put_varint(place.class.to_u64(), &mut self.meta);
            put_varint(place.due_at, &mut self.meta);
            put_varint(place.id.0, &mut self.meta);
        }
        if weight_code == WEIGHT_GIVEN {
            put_zigzag(i64::from(weight), &mut self.meta);
        }
        if let Some(payload) = payload {
            put_varint(payload.len() as u64, &mut self.meta);
            self.data.extend_from_slice(payload);
        }
        self.entries += 1;
        self.previous = Some(*place);
    }

    /// Writes the block and begins an empty one; gives the bytes written.
    pub(super) fn write(&mut self, out: &mut FileWriter) -> Result<u32, Damage> {
        // All three fit: PAYLOAD_BYTES_MAX bounds the block.
        let lengths = [self.meta.len() as u32, self.data.len() as u32, self.entries as u32];
        let mut header = [0; HEADER_BYTES - CRC_BYTES];
        for (bytes, length) in header.chunks_exact_mut(4).zip(lengths) {
            bytes.copy_from_slice(&length.to_le_bytes());
        }
        let len = out.append_frame(&[&header, &self.meta, &self.data])?;
        self.meta.clear();
        self.data.clear();
        self.entries = 0;
        self.previous = None;
        Ok(len as u32)
    }
}

/// An entry of a decoded block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) place: Place,
    pub(super) weight: i32,
    /// Of the payload in the block's bytes.
    start: u32,
    /// Of the payload; `TOMBSTONE` if there is none.
    len: u32,
}

const TOMBSTONE: u32 = u32::MAX;

/// A decoded block.
#[derive(Debug, Default)]
pub struct Block {
    bytes: Bytes,
    heads: Vec<Head>,
}

impl Block {
    /// Decodes a block whose checksum was checked; `None` if it is malformed all the same.
    pub(super) fn decode(bytes: Bytes) -> Option<Block> {
        let mut reader = Reader::new(bytes.get(CRC_BYTES..)?);
        let meta_len = reader.fixed_u32()? as usize;
        let data_len = reader.fixed_u32()? as usize;
        let entries = reader.fixed_u32()? as usize;
        let mut meta = Reader::new(reader.take(meta_len)?);
        let possible = 1..=ENTRIES_MAX.min(meta_len / ENTRY_META_MIN);
        if reader.len() != data_len || !possible.contains(&entries) {
            return None;
        }
        let mut heads: Vec<Head> = Vec::with_capacity(entries);
        let mut start = (HEADER_BYTES + meta_len) as u32;
        let mut previous = None;
        for _ in 0..entries {
            let head = Head::get(&mut meta, previous.as_ref(), start)?;
            start = start.checked_add(head.payload_len())?;
            previous = Some(head.place);
            heads.push(head);
        }
        (meta.is_empty() && start as usize == bytes.len()).then_some(Block { bytes, heads })
    }

    /// Entries of the block.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether there are none, which no block of a file has.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// The entry at `index`.
    pub fn entry(&self, index: usize) -> Option<Entry> {
        let head = self.heads.get(index)?;
        let payload = (head.len != TOMBSTONE).then(|| {
            let start = head.start as usize;
            self.bytes.slice(start..start + head.len as usize)
        });
        Some(Entry { place: head.place, weight: head.weight, payload })
    }

    /// Memory this block takes.
    pub fn bytes(&self) -> usize {
        self.bytes.len() + size_of_val(self.heads.as_slice()) + size_of::<Block>()
    }

    /// All entries without their payloads.
    pub(super) fn heads(&self) -> &[Head] {
        &self.heads
    }

    /// The payload of an entry of this block.
    pub(super) fn payload(&self, head: &Head) -> Option<&[u8]> {
        let start = head.start as usize;
        if head.len == TOMBSTONE { None } else { self.bytes.get(start..start + head.len as usize) }
    }

    /// The first entry not below `place`; `len` if all are below.
    pub(super) fn lower_bound(&self, place: &Place) -> usize {
        self.heads.partition_point(|head| head.place < *place)
    }
}

impl Head {
    /// What others see of it.
    #[inline]
    pub(super) fn entry_head(&self, loc: Loc) -> EntryHead {
        let bytes = self.payload_len() as usize;
        EntryHead { loc, place: self.place, is_job: self.len != TOMBSTONE, bytes }
    }

    #[inline]
    fn payload_len(&self) -> u32 {
        if self.len == TOMBSTONE { 0 } else { self.len }
    }

    /// Reads one entry; refuses it if it is not above the previous one.
    #[inline]
    fn get(meta: &mut Reader<'_>, previous: Option<&Place>, start: u32) -> Option<Head> {
        let tag = meta.byte()?;
        let place = match previous {
            _ if tag & TAG_ZERO != 0 => return None,
            Some(previous) if tag & TAG_LANE == 0 => {
                let due_at = previous.due_at.checked_add(meta.varint()?)?;
                let id = JobId(previous.id.0.wrapping_add_signed(meta.zigzag()?));
                Place { due_at, id, ..*previous }
            }
            None if tag & TAG_LANE == 0 => return None,
            _ => Place {
                topic: TopicNo(meta.varint_u32()?),
                class: Class::from_u64(meta.varint()?)?,
                due_at: meta.varint()?,
                id: JobId(meta.varint()?),
            },
        };
        if previous.is_some_and(|previous| *previous >= place) {
            return None;
        }
        let weight = match tag >> TAG_WEIGHT_SHIFT {
            0 => 1,
            1 => 0,
            2 => -1,
            _ => i32::try_from(meta.zigzag()?).ok()?,
        };
        let len = if tag & TAG_JOB == 0 { TOMBSTONE } else { meta.varint_u32()? };
        (tag & TAG_JOB == 0 || len != TOMBSTONE).then_some(Head { place, weight, start, len })
    }
}
