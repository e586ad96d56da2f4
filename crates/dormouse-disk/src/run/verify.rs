//! Checking a whole run: every checksum, the order, and that tables and data say the same.
//!
//! Blocks and lanes are compared with their tables in step. Ids and keys are sorted otherwise than
//! the data, so they are compared as sums of hashes of their records: equal sets have equal sums,
//! and no memory is needed.

use dormouse_core::place::{Class, Place};
use xxhash_rust::xxh3::xxh3_128;

use crate::codec::payload_key;
use crate::damage::Damage;

use super::block::Head;
use super::format::HEADER_BYTES;
use super::page::Cursor;
use super::reader::Run;
use super::record::{BlockRecord, IdRecord, KeyRecord, LaneRecord, lane_of};
use super::sample::EntrySampler;
use super::stream::BlockStream;
use super::table::{Record, Table};
use super::{Loc, RunMeta, key_hash};

/// The sum of the hashes of some records, in whatever order they come.
#[derive(Default, PartialEq, Eq)]
struct SetSum(u128);

impl SetSum {
    fn add<R: Record>(&mut self, record: &R, scratch: &mut Vec<u8>) {
        scratch.clear();
        record.put(scratch);
        self.0 = self.0.wrapping_add(xxh3_128(scratch));
    }
}

impl Run {
    /// Reads the whole file and checks all there is to check.
    pub fn verify(&self) -> Result<(), Damage> {
        let mut check = Check::new(self);
        let mut stream = BlockStream::new(self);
        let mut blocks = self.blocks.scan();
        while let Some(record) = blocks.next()? {
            let block_no = blocks.position() - 1;
            check.block(block_no, &record)?;
            stream.load(block_no)?;
            for (index, head) in stream.block().heads().iter().enumerate() {
                let block = u32::try_from(block_no).unwrap_or(u32::MAX);
                let loc = Loc { block, index: index as u16 };
                check.entry(loc, head, stream.block().payload(head))?;
            }
        }
        check.end()
    }

    /// The sum of a table's records, whose order and fences are checked; `each` sees every one.
    fn sum_table<R: Record>(
        &self,
        table: &Table<R>,
        offset: u64,
        each: impl Fn(&R) -> bool,
    ) -> Result<SetSum, Damage> {
        let mut sum = SetSum::default();
        let mut scratch = Vec::new();
        let mut previous: Option<R> = None;
        let mut records = table.scan();
        while let Some(record) = records.next()? {
            let fits = previous.is_none_or(|previous| previous <= record)
                && table.fence_agrees(records.position() - 1, &record.key())
                && each(&record);
            if !fits {
                return Err(self.source.corrupt(offset, "the table's order or fences are wrong"));
            }
            sum.add(&record, &mut scratch);
            previous = Some(record);
        }
        Ok(sum)
    }
}

/// Sums over the data read so far.
struct Check<'a> {
    run: &'a Run,
    meta: RunMeta,
    offset: u64,
    previous: Option<Place>,
    lanes: Cursor<LaneRecord>,
    lane: Option<LaneRecord>,
    ids: SetSum,
    keys: SetSum,
    sampler: EntrySampler,
    scratch: Vec<u8>,
}

impl<'a> Check<'a> {
    fn new(run: &'a Run) -> Check<'a> {
        let counts = RunMeta {
            entries: 0,
            tombstones: 0,
            keyed: 0,
            lanes: 0,
            weight: 0,
            min_id: u64::MAX,
            max_id: 0,
            ..run.meta.clone()
        };
        Check {
            run,
            meta: counts,
            offset: HEADER_BYTES,
            previous: None,
            lanes: run.lanes.scan(),
            lane: None,
            ids: SetSum::default(),
            keys: SetSum::default(),
            sampler: EntrySampler::default(),
            scratch: Vec::new(),
        }
    }

    /// A block follows the one before and knows the weight before it.
    fn block(&mut self, no: u64, record: &BlockRecord) -> Result<(), Damage> {
        let lane = self.lane.filter(|lane| lane.lane == lane_of(&record.first));
        let fits = record.offset == self.offset
            && record.weight == lane.map_or(0, |lane| lane.weight)
            && self.run.blocks.fence_agrees(no, &record.first);
        self.offset = record.offset.saturating_add(u64::from(record.len));
        self.expect(fits, "the blocks table does not fit the blocks")
    }

    fn entry(&mut self, loc: Loc, head: &Head, payload: Option<&[u8]>) -> Result<(), Damage> {
        let place = head.place;
        let ascends = self.previous.is_none_or(|previous| previous < place);
        self.expect(ascends, "the blocks are out of order")?;
        self.previous = Some(place);
        self.count_in_lane(loc, head)?;
        let hold = place.class == Class::HOLD;
        self.ids.add(&IdRecord::new(place.id, loc, hold), &mut self.scratch);
        if let Some(key) = payload.and_then(payload_key) {
            let record = KeyRecord::new(key_hash(place.topic, key), place.id, hold);
            self.keys.add(&record, &mut self.scratch);
            self.meta.keyed += 1;
        }
        self.meta.entries += 1;
        self.meta.tombstones += u64::from(payload.is_none());
        self.meta.weight += i64::from(head.weight);
        self.meta.min_id = self.meta.min_id.min(place.id.0);
        self.meta.max_id = self.meta.max_id.max(place.id.0);
        self.sampler.push(place.id.0, payload.is_none());
        Ok(())
    }

    fn count_in_lane(&mut self, loc: Loc, head: &Head) -> Result<(), Damage> {
        let lane = lane_of(&head.place);
        if self.lane.is_none_or(|open| open.lane != lane) {
            self.end_lane()?;
            self.lane = Some(LaneRecord { lane, first: loc, entries: 0, weight: 0 });
        }
        if let Some(open) = &mut self.lane {
            open.entries += 1;
            open.weight += i64::from(head.weight);
        }
        Ok(())
    }

    fn end_lane(&mut self) -> Result<(), Damage> {
        let Some(lane) = self.lane.take() else { return Ok(()) };
        let record = self.lanes.next()?;
        let fence = self.run.lanes.fence_agrees(self.meta.lanes, &lane.lane);
        self.meta.lanes += 1;
        self.expect(record == Some(lane) && fence, "the lanes table does not fit the entries")
    }

    fn end(mut self) -> Result<(), Damage> {
        self.end_lane()?;
        let run = self.run;
        self.expect(self.offset == run.layout.blocks, "there are bytes after the last block")?;
        if run.meta.samples.is_some() {
            self.meta.samples = Some(std::mem::take(&mut self.sampler).finish());
        }
        self.expect(self.meta == run.meta, "the footer does not fit the entries")?;
        let ids = run.sum_table(&run.ids, run.layout.ids, |_| true)?;
        self.expect(ids == self.ids, "the ids table does not fit the entries")?;
        let in_filter = |record: &KeyRecord| run.filter.may_have(record.hash());
        let keys = run.sum_table(&run.keys, run.layout.keys, in_filter)?;
        self.expect(keys == self.keys, "the keys table does not fit the entries")
    }

    fn expect(&self, fits: bool, what: &str) -> Result<(), Damage> {
        if fits { Ok(()) } else { Err(self.run.source.corrupt(self.offset, what)) }
    }
}
