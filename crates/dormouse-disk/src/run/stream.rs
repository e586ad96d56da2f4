//! Reading a run's blocks in order, with read-ahead of its own: a merge or a check of a whole run
//! must not push the engine's blocks out of the cache.

use bytes::Bytes;

use crate::damage::Damage;

use super::block::Block;
use super::page::Cursor;
use super::reader::Run;
use super::record::BlockRecord;

/// Read-ahead after a jump.
const AHEAD_BYTES_MIN: u64 = 32 << 10;
/// Read-ahead of a steady stream.
const AHEAD_BYTES_MAX: u64 = 256 << 10;

/// A stream of blocks that may jump ahead.
pub(super) struct BlockStream<'a> {
    run: &'a Run,
    records: Cursor<BlockRecord>,
    /// Bytes of the file from `window_at` on.
    window: Bytes,
    window_at: u64,
    ahead: u64,
    /// The number of `block`.
    no: Option<u64>,
    block: Block,
}

impl<'a> BlockStream<'a> {
    /// A stream before its first block.
    pub(super) fn new(run: &'a Run) -> BlockStream<'a> {
        BlockStream {
            run,
            records: run.blocks.scan(),
            window: Bytes::new(),
            window_at: 0,
            ahead: AHEAD_BYTES_MIN,
            no: None,
            block: Block::default(),
        }
    }

    /// The block last loaded.
    pub(super) fn block(&self) -> &Block {
        &self.block
    }

    /// Makes the block of this number the current one; `false` if there is none.
    pub(super) fn load(&mut self, no: u64) -> Result<bool, Damage> {
        if self.no == Some(no) {
            return Ok(true);
        }
        if no >= self.run.blocks.len() {
            return Ok(false);
        }
        let record = self.records.at(no)?;
        self.run.check_location(&record)?;
        self.no = None;
        // The old block lets go of its window before a new one is read.
        self.block = Block::default();
        let bytes = self.read(&record)?;
        self.block = self.run.decode(&record, bytes)?;
        self.no = Some(no);
        Ok(true)
    }

    fn read(&mut self, record: &BlockRecord) -> Result<Bytes, Damage> {
        let window_end = self.window_at + self.window.len() as u64;
        let end = record.offset + u64::from(record.len);
        if record.offset < self.window_at || end > window_end {
            self.fill(record, window_end)?;
        }
        let start = (record.offset - self.window_at) as usize;
        Ok(self.window.slice(start..start + record.len as usize))
    }

    /// Reads a new window from this block on; a longer one if the stream just goes on.
    fn fill(&mut self, record: &BlockRecord, window_end: u64) -> Result<(), Damage> {
        let goes_on = (self.window_at..=window_end).contains(&record.offset);
        self.ahead = if goes_on { (self.ahead * 2).min(AHEAD_BYTES_MAX) } else { AHEAD_BYTES_MIN };
        let left = self.run.layout.blocks - record.offset;
        let len = self.ahead.max(u64::from(record.len)).min(left);
        self.window = Bytes::new();
        self.window = Bytes::from(self.run.source.read(record.offset, len as usize)?);
        self.window_at = record.offset;
        Ok(())
    }
}
