//! Writing a run: entries in, blocks out at once, tables and footer at the end.

use std::io;
use std::sync::Arc;

use dormouse_core::place::{Class, Place};

use crate::codec::payload_key;
use crate::damage::Damage;
use crate::disk::Disk;
use crate::pace;

use super::block::{BlockBuilder, PAYLOAD_BYTES_MAX};
use super::file::{FileWriter, Source};
use super::filter::FilterWriter;
use super::format::{self, Footer, HEADER_BYTES};
use super::page::Pages;
use super::record::{BlockRecord, IdRecord, KeyRecord, LaneRecord, lane_of};
use super::sample::EntrySampler;
use super::spill::Sorter;
use super::table::{Digit, Record, SCAN_PAGES, TableWriter};
use super::{Loc, RunMeta, key_hash};

/// How many records of each table stay in memory while a run is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkRecords {
    /// Of the ids and the keys table: 16 bytes each.
    pub(super) found: usize,
    /// Of the blocks and the lanes table: up to 64 bytes each. They come in order.
    pub(super) located: usize,
}

/// 18 MiB in all. A memtable has fewer jobs and tombstones than that, so a flush writes no chunks.
const CHUNK_RECORDS: ChunkRecords = ChunkRecords { found: 1 << 19, located: 1 << 14 };

/// Writes one run.
///
/// The file takes its name as soon as this is created; if it is not finished, the caller removes
/// it. Temporary files beside it have names that begin with its name and `.spill-`; they are gone
/// when the writer is.
pub struct RunWriter {
    disk: Arc<dyn Disk>,
    out: FileWriter,
    meta: RunMeta,
    block: BlockBuilder,
    /// The place of the open block's first entry and the weight of its lane before it.
    block_first: Option<(Place, i64)>,
    lane: Option<LaneRecord>,
    previous: Option<Place>,
    blocks: Sorter<BlockRecord>,
    lanes: Sorter<LaneRecord>,
    ids: Sorter<IdRecord>,
    keys: Sorter<KeyRecord>,
    sampler: EntrySampler,
}

impl RunWriter {
    /// Begins a run in a new file.
    pub fn create(
        disk: &Arc<dyn Disk>,
        file_name: &str,
        no: u64,
        age: u64,
    ) -> Result<RunWriter, Damage> {
        RunWriter::create_with(disk, file_name, no, age, CHUNK_RECORDS)
    }

    pub(super) fn create_with(
        disk: &Arc<dyn Disk>,
        file_name: &str,
        no: u64,
        age: u64,
        chunk_records: ChunkRecords,
    ) -> Result<RunWriter, Damage> {
        let spill_name = |table| format!("{file_name}.spill-{table}");
        let ChunkRecords { found, located } = chunk_records;
        let mut out = FileWriter::create(disk, file_name, no)?;
        out.append(&format::header(no, age))?;
        Ok(RunWriter {
            disk: Arc::clone(disk),
            out,
            meta: empty_meta(no, age),
            block: BlockBuilder::new(),
            block_first: None,
            lane: None,
            previous: None,
            blocks: Sorter::new(disk, spill_name("blocks"), no, located),
            lanes: Sorter::new(disk, spill_name("lanes"), no, located),
            ids: Sorter::new(disk, spill_name("ids"), no, found),
            keys: Sorter::new(disk, spill_name("keys"), no, found),
            sampler: EntrySampler::default(),
        })
    }

    /// Appends an entry. Places must ascend.
    pub fn push(
        &mut self,
        place: &Place,
        weight: i32,
        payload: Option<&[u8]>,
    ) -> Result<(), Damage> {
        debug_assert!(self.previous.is_none_or(|previous| previous < *place), "places ascend");
        let payload_len = payload.map_or(0, <[u8]>::len);
        if payload_len > PAYLOAD_BYTES_MAX {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "a job is too large for a run");
            return Err(Damage::io(self.out.name(), error));
        }
        if self.block.is_full_for(payload_len) {
            self.end_block()?;
        }
        let loc = self.loc()?;
        let lane_weight = self.count_in_lane(place, weight, loc)?;
        self.block_first.get_or_insert((*place, lane_weight));
        self.block.push(place, weight, payload);
        self.index(place, payload, loc)?;
        self.count(place, weight, payload.is_none());
        self.previous = Some(*place);
        Ok(())
    }

    /// Writes tables and footer and syncs the file. The caller renames it and syncs the directory.
    pub fn finish(mut self) -> Result<RunMeta, Damage> {
        self.end_block()?;
        if let Some(lane) = self.lane.take() {
            self.lanes.push(lane)?;
        }
        let mut out = self.out;
        let data_bytes = out.position() - HEADER_BYTES;
        let blocks = self.blocks.len();
        self.meta.lanes = self.lanes.len();
        self.meta.keyed = self.keys.len();
        write_table(self.blocks, &mut out)?;
        write_table(self.lanes, &mut out)?;
        write_table(self.ids, &mut out)?;
        let keys_at = out.position();
        write_table(self.keys, &mut out)?;
        let filter_lines = write_filter(&self.disk, &mut out, keys_at, self.meta.keyed)?;
        let samples = self.sampler.finish();
        out.append_frame(&[&samples.put()])?;
        self.meta.samples = Some(samples);
        self.meta.bytes = out.position() + format::FOOTER_BYTES;
        let format = format::FORMAT;
        let footer = Footer { meta: self.meta, data_bytes, blocks, filter_lines, format };
        out.append_frame(&[&footer.put()])?;
        out.sync()?;
        Ok(footer.meta)
    }

    /// Where the next entry goes.
    fn loc(&self) -> Result<Loc, Damage> {
        let block = u32::try_from(self.blocks.len()).map_err(|_| {
            let error = io::Error::new(io::ErrorKind::FileTooLarge, "a run is full");
            Damage::io(self.out.name(), error)
        })?;
        // A block is full at 2^15 - 1 entries.
        Ok(Loc { block, index: self.block.len() as u16 })
    }

    /// Counts the entry in its lane; gives the lane's weight before it.
    fn count_in_lane(&mut self, place: &Place, weight: i32, loc: Loc) -> Result<i64, Damage> {
        let lane = lane_of(place);
        if let Some(open) = self.lane.take_if(|open| open.lane != lane) {
            self.lanes.push(open)?;
        }
        let begun = LaneRecord { lane, first: loc, entries: 0, weight: 0 };
        let open = self.lane.get_or_insert(begun);
        let before = open.weight;
        open.entries += 1;
        open.weight += i64::from(weight);
        Ok(before)
    }

    fn index(&mut self, place: &Place, payload: Option<&[u8]>, loc: Loc) -> Result<(), Damage> {
        let hold = place.class == Class::HOLD;
        self.ids.push(IdRecord::new(place.id, loc, hold))?;
        if let Some(key) = payload.and_then(payload_key) {
            let hash = key_hash(place.topic, key);
            self.keys.push(KeyRecord::new(hash, place.id, hold))?;
        }
        Ok(())
    }

    fn count(&mut self, place: &Place, weight: i32, tombstone: bool) {
        let meta = &mut self.meta;
        meta.entries += 1;
        meta.tombstones += u64::from(tombstone);
        meta.weight += i64::from(weight);
        meta.min_id = meta.min_id.min(place.id.0);
        meta.max_id = meta.max_id.max(place.id.0);
        self.sampler.push(place.id.0, tombstone);
    }

    fn end_block(&mut self) -> Result<(), Damage> {
        let Some((first, weight)) = self.block_first.take() else { return Ok(()) };
        let offset = self.out.position();
        let len = self.block.write(&mut self.out)?;
        pace::rest();
        self.blocks.push(BlockRecord { first, weight, offset, len })
    }
}

fn empty_meta(no: u64, age: u64) -> RunMeta {
    RunMeta {
        no,
        age,
        entries: 0,
        tombstones: 0,
        keyed: 0,
        lanes: 0,
        weight: 0,
        min_id: u64::MAX,
        max_id: 0,
        bytes: 0,
        samples: None,
    }
}

fn write_table<R: Record + Digit>(records: Sorter<R>, out: &mut FileWriter) -> Result<(), Damage> {
    let mut table = TableWriter::new(records.len());
    let mut records = records.finish()?;
    while let Some(record) = records.next()? {
        table.push(out, &record)?;
    }
    table.finish(out)
}

/// Writes the filter from the keys just written: read again they are sorted and need no memory.
fn write_filter(
    disk: &Arc<dyn Disk>,
    out: &mut FileWriter,
    keys_at: u64,
    keyed: u64,
) -> Result<u64, Damage> {
    let mut filter = FilterWriter::new(keyed);
    if keyed > 0 {
        out.flush()?;
        let source = Arc::new(Source::open(disk, out.name(), out.no())?);
        let mut keys = Pages::<KeyRecord>::new(source, keys_at, keyed).cursor(SCAN_PAGES);
        while let Some(key) = keys.next()? {
            filter.add(out, key.hash())?;
        }
    }
    filter.finish(out)
}
