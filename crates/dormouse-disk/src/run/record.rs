//! The records of the four tables, and their keys.

use std::cmp::Ordering;

use dormouse_core::job::JobId;
use dormouse_core::place::{Class, Place};
use dormouse_core::topic::TopicNo;

use crate::codec::Reader;

use super::Loc;
use super::page::Fixed;
use super::table::Record;

/// A lane: topic and class.
pub(super) type Lane = (TopicNo, Class);

/// The lane of a place.
pub(super) fn lane_of(place: &Place) -> Lane {
    (place.topic, place.class)
}

/// A data block: where it is and what is before it.
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

/// A lane: where it begins and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LaneRecord {
    pub(super) lane: Lane,
    pub(super) first: Loc,
    pub(super) entries: u64,
    pub(super) weight: i64,
}

/// Where an id is mentioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdRecord {
    pub(super) id: JobId,
    pub(super) loc: Loc,
    pub(super) hold: bool,
}

/// Which job a key belongs to, or may belong to: the hash is not the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyRecord {
    /// As [`super::key_hash`] gives it.
    pub(super) hash: u64,
    pub(super) id: JobId,
    pub(super) hold: bool,
}

/// The bit of an index in a block that says "key hold".
const HOLD_BIT: u16 = 1 << 15;

impl IdRecord {
    fn flagged_index(&self) -> u16 {
        self.loc.index | if self.hold { HOLD_BIT } else { 0 }
    }

    /// One number that sorts as the record does: comparing it is what sorting is fast by.
    fn rank(&self) -> u128 {
        u128::from(self.id.0) << 48
            | u128::from(self.loc.block) << 16
            | u128::from(self.flagged_index())
    }
}

impl KeyRecord {
    fn flagged_hash(&self) -> u64 {
        self.hash | u64::from(self.hold)
    }

    fn rank(&self) -> u128 {
        u128::from(self.flagged_hash()) << 64 | u128::from(self.id.0)
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
        self.id.0.put(out);
        out.extend_from_slice(&self.flagged_index().to_le_bytes());
        out.extend_from_slice(&self.loc.block.to_le_bytes());
    }

    fn get(reader: &mut Reader<'_>) -> Option<IdRecord> {
        let id = JobId(reader.fixed_u64()?);
        let index = u16::from_le_bytes(reader.array()?);
        let loc = Loc { block: reader.fixed_u32()?, index: index & !HOLD_BIT };
        Some(IdRecord { id, loc, hold: index & HOLD_BIT != 0 })
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
        self.flagged_hash().put(out);
        self.id.0.put(out);
    }

    fn get(reader: &mut Reader<'_>) -> Option<KeyRecord> {
        let hash = reader.fixed_u64()?;
        Some(KeyRecord { hash: hash & !1, id: JobId(reader.fixed_u64()?), hold: hash & 1 == 1 })
    }
}

impl Record for KeyRecord {
    type Key = u64;

    fn key(&self) -> u64 {
        self.flagged_hash()
    }
}
