//! Decoded blocks, bounded by their bytes, for one thread.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::damage::Damage;

use super::block::Block;
use super::reader::Run;

/// Runs whose last block is found without hashing.
const RECENT: usize = 16;

/// A block's run and number.
type BlockKey = (u64, u32);

/// A cache of decoded blocks.
///
/// Eviction is by the clock rule: the hand goes round, spares blocks that were read since its last
/// pass, and drops the first that was not. A drain reads each block once, so it evicts its own.
pub struct BlockCache {
    bytes_max: usize,
    bytes: usize,
    slots: HashMap<BlockKey, usize, FixedState>,
    ring: Vec<CacheEntry>,
    hand: usize,
    recent: [RecentBlock; RECENT],
    /// Blocks that are read are kept.
    is_keeping: bool,
}

struct CacheEntry {
    key: BlockKey,
    block: Arc<Block>,
    asked: bool,
}

/// The block a run was last asked for.
#[derive(Default)]
struct RecentBlock {
    key: Option<BlockKey>,
    block: Arc<Block>,
}

impl BlockCache {
    /// A cache of at most `bytes_max` bytes, besides the last block of each of 16 runs.
    pub fn new(bytes_max: usize) -> BlockCache {
        BlockCache {
            bytes_max,
            bytes: 0,
            slots: HashMap::with_hasher(FixedState::default()),
            ring: Vec::new(),
            hand: 0,
            recent: Default::default(),
            is_keeping: true,
        }
    }

    /// Whether blocks that are read from now on are kept. The last block of a run is kept anyway,
    /// so reading on needs no more.
    pub fn set_keeping(&mut self, is_keeping: bool) {
        self.is_keeping = is_keeping;
    }

    /// The block of this number of a run, read if need be.
    #[inline]
    pub fn get(&mut self, run: &Run, no: u32) -> Result<&Arc<Block>, Damage> {
        let key = (run.meta().no, no);
        let recent = (key.0 % RECENT as u64) as usize;
        if self.recent[recent].key != Some(key) {
            let block = self.find_or_read(run, key)?;
            self.recent[recent] = RecentBlock { key: Some(key), block };
        }
        Ok(&self.recent[recent].block)
    }

    /// Drops all blocks of a run.
    pub fn forget(&mut self, run_no: u64) {
        let mut index = 0;
        while index < self.ring.len() {
            if self.ring[index].key.0 == run_no { self.remove(index) } else { index += 1 }
        }
        for recent in &mut self.recent {
            if recent.key.is_some_and(|key| key.0 == run_no) {
                *recent = RecentBlock::default();
            }
        }
    }

    /// Bytes of the blocks in the cache.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn find_or_read(&mut self, run: &Run, key: BlockKey) -> Result<Arc<Block>, Damage> {
        if let Some(&index) = self.slots.get(&key) {
            let slot = &mut self.ring[index];
            slot.asked = true;
            return Ok(Arc::clone(&slot.block));
        }
        let block = Arc::new(run.read_block(key.1)?);
        if self.is_keeping {
            self.insert(key, Arc::clone(&block));
        }
        Ok(block)
    }

    fn insert(&mut self, key: BlockKey, block: Arc<Block>) {
        let bytes = block.bytes();
        while !self.ring.is_empty() && self.bytes + bytes > self.bytes_max {
            self.drop_one();
        }
        if bytes <= self.bytes_max {
            self.bytes += bytes;
            self.slots.insert(key, self.ring.len());
            self.ring.push(CacheEntry { key, block, asked: false });
        }
    }

    /// Moves the hand to a block nobody asked for and drops it. Ends within two rounds.
    fn drop_one(&mut self) {
        loop {
            if self.hand >= self.ring.len() {
                self.hand = 0;
            }
            if !std::mem::take(&mut self.ring[self.hand].asked) {
                return self.remove(self.hand);
            }
            self.hand += 1;
        }
    }

    /// Removes a slot; the last one takes its position.
    fn remove(&mut self, index: usize) {
        let slot = self.ring.swap_remove(index);
        self.bytes -= slot.block.bytes();
        self.slots.remove(&slot.key);
        if let Some(moved) = self.ring.get(index) {
            self.slots.insert(moved.key, index);
        }
    }
}
