//! Reading a run.

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::job::JobId;
use dormouse_core::place::{Class, Place};
use dormouse_core::topic::TopicNo;

use crate::damage::Damage;
use crate::disk::Disk;

use super::block::{BLOCK_BYTES_MAX, BLOCK_BYTES_TARGET, Block};
use super::cache::BlockCache;
use super::file::Source;
use super::filter::Filter;
use super::format::{self, Footer, Layout};
use super::record::{BlockRecord, IdRecord, KeyRecord, LaneRecord, lane_of};
use super::table::Table;
use super::{Entry, EntryHead, Loc, RunMeta};

/// An open run. Several threads may read it at once, each with its own [`BlockCache`].
pub struct Run {
    pub(super) source: Arc<Source>,
    pub(super) meta: RunMeta,
    pub(super) layout: Layout,
    pub(super) blocks: Table<BlockRecord>,
    pub(super) lanes: Table<LaneRecord>,
    pub(super) ids: Table<IdRecord>,
    pub(super) keys: Table<KeyRecord>,
    pub(super) filter: Filter,
}

impl Run {
    /// Opens a run: reads header, footer, fences and filter.
    pub fn open(disk: &Arc<dyn Disk>, file_name: &str) -> Result<Run, Damage> {
        let source = Source::open(disk, file_name, 0)?;
        let bytes = source.len()?;
        if bytes < format::HEADER_BYTES + format::FOOTER_BYTES {
            return Err(source.corrupt(bytes, "the file is too short for a run"));
        }
        let header = source.read(0, format::HEADER_BYTES as usize)?;
        let (no, age) = format::read_header(file_name, &header)?;
        let source = Arc::new(source.of_run(no));
        let footer = Footer::read(&source, bytes, age)?;
        // With every section within the file, no number of the footer can ask for more memory than
        // the file has bytes.
        let layout = Layout::of(&footer)
            .filter(|layout| layout.footer == bytes - format::FOOTER_BYTES)
            .ok_or_else(|| {
                source.corrupt(bytes - format::FOOTER_BYTES, "the sections do not fill the file")
            })?;
        let samples = format::read_samples(&source, &layout)?;
        let meta = RunMeta { samples, ..footer.meta };
        Ok(Run {
            blocks: Table::open(&source, layout.blocks, footer.blocks)?,
            lanes: Table::open(&source, layout.lanes, meta.lanes)?,
            ids: Table::open(&source, layout.ids, meta.entries)?,
            keys: Table::open(&source, layout.keys, meta.keyed)?,
            filter: Filter::open(&source, layout.filter, footer.filter_lines)?,
            source,
            meta,
            layout,
        })
    }

    /// The run's figures, known without reading its entries.
    pub fn meta(&self) -> &RunMeta {
        &self.meta
    }

    /// The classes a topic has entries of, from this one on, ascending, at most so many.
    pub fn classes(&self, topic: TopicNo, from: Class, max: usize) -> Result<Vec<Class>, Damage> {
        let mut classes = Vec::new();
        let mut lanes = self.lanes.from(&(topic, from))?;
        while classes.len() < max
            && let Some(record) = lanes.next()?
            && record.lane.0 == topic
        {
            classes.push(record.lane.1);
        }
        Ok(classes)
    }

    /// How many entries the topics have of which this is so. Reads the lanes, not the entries.
    pub fn entries_of(&self, is_one: &dyn Fn(TopicNo) -> bool) -> Result<u64, Damage> {
        let mut entries = 0;
        let mut lanes = self.lanes.from(&(TopicNo(0), Class::FIRST))?;
        while let Some(record) = lanes.next()? {
            if is_one(record.lane.0) {
                entries += record.entries;
            }
        }
        Ok(entries)
    }

    /// Whether the lane has an entry.
    pub fn has_lane(&self, topic: TopicNo, class: Class) -> Result<bool, Damage> {
        let floor = self.lanes.floor(&(topic, class))?;
        Ok(floor.is_some_and(|(_, record)| record.lane == (topic, class)))
    }

    /// The first entry of a lane that is not before `from`.
    pub fn seek(
        &self,
        cache: &mut BlockCache,
        topic: TopicNo,
        class: Class,
        from: (u64, JobId),
    ) -> Result<Option<Loc>, Damage> {
        let bound = Place { topic, class, due_at: from.0, id: from.1 };
        let Some((loc, after)) = self.lower_bound(cache, &bound)? else { return Ok(None) };
        let head = cache.get(self, loc.block)?.heads().get(usize::from(loc.index));
        match head {
            Some(head) => Ok((lane_of(&head.place) == (topic, class)).then_some(loc)),
            // All of this block is below the bound, so the next one begins at or above it.
            None => self.first_of(cache, after, (topic, class)),
        }
    }

    /// The last entry of a lane before a position.
    pub fn seek_back(
        &self,
        cache: &mut BlockCache,
        topic: TopicNo,
        class: Class,
        before: (u64, JobId),
    ) -> Result<Option<Loc>, Damage> {
        let bound = Place { topic, class, due_at: before.0, id: before.1 };
        let Some((loc, _)) = self.lower_bound(cache, &bound)? else { return Ok(None) };
        self.entry_before(cache, loc, (topic, class))
    }

    /// The preceding entry of the same lane.
    pub fn prev(&self, cache: &mut BlockCache, loc: Loc) -> Result<Option<Loc>, Damage> {
        let lane = lane_of(&self.head(cache, loc)?.place);
        self.entry_before(cache, loc, lane)
    }

    /// The entry before a location, if it is of this lane.
    fn entry_before(
        &self,
        cache: &mut BlockCache,
        loc: Loc,
        lane: (TopicNo, Class),
    ) -> Result<Option<Loc>, Damage> {
        let before = match (loc.index.checked_sub(1), loc.block.checked_sub(1)) {
            (Some(index), _) => Loc { block: loc.block, index },
            (None, Some(block)) => {
                let last = cache.get(self, block)?.len().saturating_sub(1);
                // A block has fewer than 2^15 entries.
                Loc { block, index: last as u16 }
            }
            (None, None) => return Ok(None),
        };
        let head = self.head(cache, before)?;
        Ok((lane_of(&head.place) == lane).then_some(before))
    }

    /// The entry at a place. `near` is the block in which the last one was looked for: places that
    /// are asked for in order are mostly in the same.
    pub fn at(
        &self,
        cache: &mut BlockCache,
        place: &Place,
        near: &mut Option<u32>,
    ) -> Result<Option<Entry>, Damage> {
        let covers = |block: &Block| {
            let (first, last) = (block.heads().first(), block.heads().last());
            first.is_some_and(|head| head.place <= *place)
                && last.is_some_and(|head| *place <= head.place)
        };
        let no = match *near {
            Some(no) if covers(cache.get(self, no)?) => no,
            _ => match self.blocks.floor(place)? {
                Some((no, _)) => self.block_no(no)?,
                None => return Ok(None),
            },
        };
        *near = Some(no);
        let block = cache.get(self, no)?;
        let index = block.lower_bound(place);
        let is_there = block.heads().get(index).is_some_and(|head| head.place == *place);
        Ok(if is_there { block.entry(index) } else { None })
    }

    /// The following entry of the same lane.
    #[inline]
    pub fn next(&self, cache: &mut BlockCache, loc: Loc) -> Result<Option<Loc>, Damage> {
        let heads = cache.get(self, loc.block)?.heads();
        let index = usize::from(loc.index);
        let Some(head) = heads.get(index) else { return Err(self.no_entry(loc)) };
        let lane = lane_of(&head.place);
        match heads.get(index + 1) {
            Some(next) => {
                let next_loc = Loc { block: loc.block, index: loc.index + 1 };
                Ok((lane_of(&next.place) == lane).then_some(next_loc))
            }
            None => self.first_of(cache, u64::from(loc.block) + 1, lane),
        }
    }

    /// The following entry of the same lane, without its payload.
    #[inline]
    pub fn next_head(&self, cache: &mut BlockCache, loc: Loc) -> Result<Option<EntryHead>, Damage> {
        let heads = cache.get(self, loc.block)?.heads();
        let index = usize::from(loc.index);
        if let (Some(head), Some(next)) = (heads.get(index), heads.get(index + 1)) {
            let loc = Loc { block: loc.block, index: loc.index + 1 };
            let is_same_lane = lane_of(&next.place) == lane_of(&head.place);
            return Ok(is_same_lane.then(|| next.entry_head(loc)));
        }
        let Some(loc) = self.next(cache, loc)? else { return Ok(None) };
        self.head(cache, loc).map(Some)
    }

    /// The entry at a location this run gave, without its payload.
    pub fn head(&self, cache: &mut BlockCache, loc: Loc) -> Result<EntryHead, Damage> {
        let head = cache.get(self, loc.block)?.heads().get(usize::from(loc.index));
        head.map(|head| head.entry_head(loc)).ok_or_else(|| self.no_entry(loc))
    }

    /// Where the job at a location this run gave rests; `None` for a tombstone. A block of one
    /// large job is not read: the index has its place.
    pub fn place(&self, cache: &mut BlockCache, loc: Loc) -> Result<Option<Place>, Damage> {
        if loc.index == 0 {
            let record = self.block_record(loc.block)?;
            if record.len as usize > BLOCK_BYTES_TARGET {
                return Ok(Some(record.first));
            }
        }
        let head = self.head(cache, loc)?;
        Ok(head.is_job.then_some(head.place))
    }

    /// Reads the payload of the entry at a location this run gave; `None` for a tombstone.
    #[inline]
    pub fn with_payload<R>(
        &self,
        cache: &mut BlockCache,
        loc: Loc,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Damage> {
        let block = cache.get(self, loc.block)?;
        let head = block.heads().get(usize::from(loc.index));
        let head = head.ok_or_else(|| self.no_entry(loc))?;
        Ok(block.payload(head).map(read))
    }

    /// The entry at a location this run gave.
    #[inline]
    pub fn entry(&self, cache: &mut BlockCache, loc: Loc) -> Result<Entry, Damage> {
        let entry = cache.get(self, loc.block)?.entry(usize::from(loc.index));
        entry.ok_or_else(|| self.no_entry(loc))
    }

    /// All mentions of an id: of jobs and tombstones, or of key holds.
    pub fn by_id(&self, id: JobId, holds: bool) -> Result<Vec<Loc>, Damage> {
        let mut found = Vec::new();
        if id.0 < self.meta.min_id || id.0 > self.meta.max_id {
            return Ok(found);
        }
        let mut ids = self.ids.from(&id.0)?;
        while let Some(record) = ids.next()?
            && record.id == id
        {
            if record.is_hold() == holds {
                found.push(record.loc());
            }
        }
        Ok(found)
    }

    /// Prefetches the bytes that `may_have_key` reads; before asking many runs, touch all.
    pub fn touch_key(&self, key_hash: u64) -> u64 {
        self.filter.touch(key_hash)
    }

    /// Whether the run may have a key of this hash ([`super::key_hash`]); `false` is certain.
    #[inline]
    pub fn may_have_key(&self, key_hash: u64) -> bool {
        self.filter.may_have(key_hash)
    }

    /// The jobs (`false`) and holds (`true`) whose key may be the one of this hash.
    pub fn by_key(&self, key_hash: u64) -> Result<Vec<(JobId, bool)>, Damage> {
        let mut found = Vec::new();
        if !self.may_have_key(key_hash) {
            return Ok(found);
        }
        let mut keys = self.keys.from(&key_hash)?;
        while let Some(record) = keys.next()?
            && record.hash() == key_hash
        {
            found.push((record.id, record.is_hold()));
        }
        Ok(found)
    }

    /// The weight of a lane's entries before `below`. Reads one block at most.
    pub fn rank(
        &self,
        cache: &mut BlockCache,
        topic: TopicNo,
        class: Class,
        below: (u64, JobId),
    ) -> Result<i64, Damage> {
        let bound = Place { topic, class, due_at: below.0, id: below.1 };
        let Some((block_no, record)) = self.blocks.floor(&bound)? else { return Ok(0) };
        let lane = (topic, class);
        let before = if lane_of(&record.first) == lane { record.weight } else { 0 };
        if record.first == bound {
            return Ok(before);
        }
        let block = cache.get(self, self.block_no(block_no)?)?;
        let end = block.lower_bound(&bound);
        let below = block.heads().get(..end).unwrap_or(&[]);
        let in_lane = below.iter().rev().take_while(|head| lane_of(&head.place) == lane);
        Ok(before + in_lane.map(|head| i64::from(head.weight)).sum::<i64>())
    }

    /// Reads and decodes a block, past every cache.
    pub(super) fn read_block(&self, no: u32) -> Result<Block, Damage> {
        let record = self.block_record(no)?;
        let bytes = self.source.read(record.offset, record.len as usize)?;
        self.decode(&record, Bytes::from(bytes))
    }

    fn block_record(&self, no: u32) -> Result<BlockRecord, Damage> {
        if u64::from(no) >= self.blocks.len() {
            return Err(self.no_entry(Loc { block: no, index: 0 }));
        }
        let record = self.blocks.get(u64::from(no))?;
        self.check_location(&record)?;
        Ok(record)
    }

    /// The block of this record from its bytes.
    pub(super) fn decode(&self, record: &BlockRecord, bytes: Bytes) -> Result<Block, Damage> {
        self.source.check_frame(record.offset, &bytes)?;
        Block::decode(bytes)
            .filter(|block| block.heads().first().is_some_and(|head| head.place == record.first))
            .ok_or_else(|| self.source.corrupt(record.offset, "the block is malformed"))
    }

    /// Whether a record points to a block that can be.
    pub(super) fn check_location(&self, record: &BlockRecord) -> Result<(), Damage> {
        let end = record.offset.checked_add(u64::from(record.len));
        if record.len as usize > BLOCK_BYTES_MAX || end.is_none_or(|end| end > self.layout.blocks) {
            return Err(self.source.corrupt(record.offset, "no block can be here"));
        }
        Ok(())
    }

    /// Where a place is or would be in its block (the index may be one past the last), and the
    /// number of the block after that one. `None` if the run is empty.
    fn lower_bound(
        &self,
        cache: &mut BlockCache,
        bound: &Place,
    ) -> Result<Option<(Loc, u64)>, Damage> {
        if self.blocks.len() == 0 {
            return Ok(None);
        }
        let block_no = self.blocks.floor(bound)?.map_or(0, |(no, _)| no);
        let block = self.block_no(block_no)?;
        let index = cache.get(self, block)?.lower_bound(bound);
        // A block has fewer than 2^15 entries.
        Ok(Some((Loc { block, index: index as u16 }, block_no + 1)))
    }

    /// The first entry of a block, if there is such a block and it begins with this lane.
    fn first_of(
        &self,
        cache: &mut BlockCache,
        block_no: u64,
        lane: (TopicNo, Class),
    ) -> Result<Option<Loc>, Damage> {
        if block_no >= self.blocks.len() {
            return Ok(None);
        }
        let block = self.block_no(block_no)?;
        let first = cache.get(self, block)?.heads().first();
        let same_lane = first.is_some_and(|head| lane_of(&head.place) == lane);
        Ok(same_lane.then_some(Loc { block, index: 0 }))
    }

    fn block_no(&self, no: u64) -> Result<u32, Damage> {
        u32::try_from(no)
            .map_err(|_| self.source.corrupt(self.layout.blocks, "there are too many blocks"))
    }

    fn no_entry(&self, loc: Loc) -> Damage {
        let Loc { block, index } = loc;
        self.source.corrupt(
            self.layout.blocks,
            &format!("an index names entry {index} of block {block}, which is not there"),
        )
    }
}
