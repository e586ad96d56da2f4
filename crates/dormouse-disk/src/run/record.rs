//! The records of the four tables, and their keys.

use std::cmp::Ordering;

use dormouse_core::job::JobId;
use dormouse_core::place::{Class, Place};
use dormouse_core::topic::TopicNo;

use crate::codec::Reader;

use super::Loc;
use super::page::Fixed;
use super::table::{Digit, Record};

/// A lane: topic and class.
pub(super) type Lane = (TopicNo, Class);

/// The lane of a place.
pub(super) fn lane_of(place: &Place) -> Lane {
    (place.topic, place.class)
}

/// A data block: its position, and the weight of its lane before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlockRecord {
    /// Of its first entry.
    pub(super) first: Place,
    /// Of that entry's lane before this block.
    pub(super) weight: i64,
    /// In the file.
    pub(super) offset: u64,
    /// In bytes.
    pub(super) len: u32,
}

/// A lane: its first entry, and its totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LaneRecord {
    pub(super) lane: Lane,
    pub(super) first: Loc,
    pub(super) entries: u64,
    pub(super) weight: i64,
}

/// Where an id is mentioned. 16 bytes in memory, because a million of them wait to be sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdRecord {
    pub(super) id: JobId,
    block: u32,
    flagged_index: u16,
}

/// Which job a key belongs to, or may belong to: the hash is not the key. 16 bytes, as above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyRecord {
    flagged_hash: u64,
    pub(super) id: JobId,
}

/// The bit of an index in a block that says "key hold".
const INDEX_HOLD: u16 = 1 << 15;
/// The bit of a hash that says "key hold".
const HASH_HOLD: u64 = 1;

impl IdRecord {
    /// A mention of `id`.
    pub(super) fn new(id: JobId, loc: Loc, hold: bool) -> IdRecord {
        let flag = if hold { INDEX_HOLD } else { 0 };
        IdRecord { id, block: loc.block, flagged_index: loc.index | flag }
    }

    /// Where.
    pub(super) fn loc(&self) -> Loc {
        Loc { block: self.block, index: self.flagged_index & !INDEX_HOLD }
    }

    /// Whether a key hold mentions it.
    pub(super) fn is_hold(&self) -> bool {
        self.flagged_index & INDEX_HOLD != 0
    }

    /// One number that sorts as the record does: comparing numbers makes sorting fast.
    fn rank(&self) -> u128 {
        let loc = u128::from(self.block) << 16 | u128::from(self.flagged_index);
        u128::from(self.id.0) << 48 | loc
    }
}

impl KeyRecord {
    /// `id` has a key of this hash, as [`super::key_hash`] gives it.
    pub(super) fn new(hash: u64, id: JobId, hold: bool) -> KeyRecord {
        KeyRecord { flagged_hash: hash | if hold { HASH_HOLD } else { 0 }, id }
    }

    /// The key's hash.
    pub(super) fn hash(&self) -> u64 {
        self.flagged_hash & !HASH_HOLD
    }

    /// Whether a key hold has it.
    pub(super) fn is_hold(&self) -> bool {
        self.flagged_hash & HASH_HOLD != 0
    }

    fn rank(&self) -> u128 {
        u128::from(self.flagged_hash) << 64 | u128::from(self.id.0)
    }
}

macro_rules! sort_by_rank {
    ($record:ty) => {
        impl Ord for $record {
            fn cmp(&self, other: &Self) -> Ordering {
                self.rank().cmp(&other.rank())
            }
        }

        impl PartialOrd for $record {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
    };
}

sort_by_rank!(IdRecord);
sort_by_rank!(KeyRecord);

impl Digit for IdRecord {
    fn digit(&self) -> u64 {
        self.id.0
    }
}

impl Digit for KeyRecord {
    fn digit(&self) -> u64 {
        self.flagged_hash
    }
}

impl Digit for BlockRecord {
    fn digit(&self) -> u64 {
        u64::from(self.first.topic.0)
    }
}

impl Digit for LaneRecord {
    fn digit(&self) -> u64 {
        u64::from(self.lane.0.0)
    }
}

impl Fixed for u64 {
    const WIDTH: usize = 8;

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn get(reader: &mut Reader<'_>) -> Option<u64> {
        reader.fixed_u64()
    }
}

impl Fixed for Lane {
    const WIDTH: usize = 9;

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.0.to_le_bytes());
        // A class is below 2^34.
        let [class @ .., _, _, _] = self.1.to_u64().to_le_bytes();
        out.extend_from_slice(&class);
    }

    fn get(reader: &mut Reader<'_>) -> Option<Lane> {
        let topic = TopicNo(reader.fixed_u32()?);
        let mut class = [0; 8];
        class[..5].copy_from_slice(&reader.array::<5>()?);
        Some((topic, Class::from_u64(u64::from_le_bytes(class))?))
    }
}

impl Fixed for Place {
    const WIDTH: usize = Lane::WIDTH + 16;

    fn put(&self, out: &mut Vec<u8>) {
        lane_of(self).put(out);
        self.due_at.put(out);
        self.id.0.put(out);
    }

    fn get(reader: &mut Reader<'_>) -> Option<Place> {
        let (topic, class) = Lane::get(reader)?;
        let due_at = reader.fixed_u64()?;
        Some(Place { topic, class, due_at, id: JobId(reader.fixed_u64()?) })
    }
}

impl Fixed for BlockRecord {
    const WIDTH: usize = Place::WIDTH + 20;

    fn put(&self, out: &mut Vec<u8>) {
        self.first.put(out);
        self.weight.cast_unsigned().put(out);
        self.offset.put(out);
        out.extend_from_slice(&self.len.to_le_bytes());
    }

    fn get(reader: &mut Reader<'_>) -> Option<BlockRecord> {
        let first = Place::get(reader)?;
        let weight = reader.fixed_u64()?.cast_signed();
        let offset = reader.fixed_u64()?;
        Some(BlockRecord { first, weight, offset, len: reader.fixed_u32()? })
    }
}

impl Record for BlockRecord {
    type Key = Place;

    fn key(&self) -> Place {
        self.first
    }
}

impl Fixed for LaneRecord {
    const WIDTH: usize = Lane::WIDTH + 22;

    fn put(&self, out: &mut Vec<u8>) {
        self.lane.put(out);
        out.extend_from_slice(&self.first.block.to_le_bytes());
        out.extend_from_slice(&self.first.index.to_le_bytes());
        self.entries.put(out);
        self.weight.cast_unsigned().put(out);
    }

    fn get(reader: &mut Reader<'_>) -> Option<LaneRecord> {
        let lane = Lane::get(reader)?;
        let block = reader.fixed_u32()?;
        let index = u16::from_le_bytes(reader.array()?);
        let entries = reader.fixed_u64()?;
        let weight = reader.fixed_u64()?.cast_signed();
        Some(LaneRecord { lane, first: Loc { block, index }, entries, weight })
    }
}

impl Record for LaneRecord {
    type Key = Lane;

    fn key(&self) -> Lane {
        self.lane
    }
}

impl Fixed for IdRecord {
    const WIDTH: usize = 14;

    fn put(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; Self::WIDTH];
        bytes[..8].copy_from_slice(&self.id.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.block.to_le_bytes());
        bytes[12..].copy_from_slice(&self.flagged_index.to_le_bytes());
        out.extend_from_slice(&bytes);
    }

    fn get(reader: &mut Reader<'_>) -> Option<IdRecord> {
        let id = JobId(reader.fixed_u64()?);
        let block = reader.fixed_u32()?;
        Some(IdRecord { id, block, flagged_index: u16::from_le_bytes(reader.array()?) })
    }
}

impl Record for IdRecord {
    type Key = u64;

    fn key(&self) -> u64 {
        self.id.0
    }
}

impl Fixed for KeyRecord {
    const WIDTH: usize = 16;

    fn put(&self, out: &mut Vec<u8>) {
        self.flagged_hash.put(out);
        self.id.0.put(out);
    }

    fn get(reader: &mut Reader<'_>) -> Option<KeyRecord> {
        let flagged_hash = reader.fixed_u64()?;
        Some(KeyRecord { flagged_hash, id: JobId(reader.fixed_u64()?) })
    }
}

impl Record for KeyRecord {
    type Key = u64;

    fn key(&self) -> u64 {
        self.flagged_hash
    }
}
