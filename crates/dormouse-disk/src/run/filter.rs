//! The key filter: says without reading that a run does not have a key.
//!
//! A Bloom filter in lines of one cache line each. The line is chosen by the hash's *upper* bits,
//! so that hashes in ascending order fill the lines in ascending order: a filter of any size is
//! written along the sorted keys table, holding one line in memory.

use std::sync::Arc;

use crate::codec::Reader;
use crate::damage::Damage;

use super::GOLDEN;
use super::file::{FileWriter, Source};
use super::page::{Fixed, PageWriter, Pages};
use super::table::SCAN_PAGES;

/// Bits of filter per key. 16 give about one false answer in 1,000, which costs a page read; a put
/// with a key asks every run.
const BITS_PER_KEY: u64 = 16;
pub(super) const LINE_BITS: u64 = 512;
/// Bits a hash sets in its line.
const PROBES: u32 = 6;

/// 512 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
pub(super) struct FilterLine([u64; 8]);

impl FilterLine {
    pub(super) fn bits(hash: u64) -> impl Iterator<Item = (usize, u64)> {
        // Mixed, because the upper bits, which chose the line, are the same for all in it.
        let mixed = hash.wrapping_mul(GOLDEN);
        (0..PROBES).map(move |probe| {
            let bit = mixed >> (10 + 9 * probe) & (LINE_BITS - 1);
            ((bit / 64) as usize, 1 << (bit % 64))
        })
    }

    fn add(&mut self, hash: u64) {
        for (word, bit) in FilterLine::bits(hash) {
            self.0[word] |= bit;
        }
    }

    /// All bits are looked at: a branch on each would be guessed wrong half the time, and a wrong
    /// guess keeps the processor from fetching the lines of other runs meanwhile.
    fn may_have(&self, hash: u64) -> bool {
        FilterLine::bits(hash).fold(true, |all, (word, bit)| all & (self.0[word] & bit != 0))
    }
}

impl Fixed for FilterLine {
    const WIDTH: usize = 64;

    fn put(&self, out: &mut Vec<u8>) {
        for word in self.0 {
            word.put(out);
        }
    }

    fn get(reader: &mut Reader<'_>) -> Option<FilterLine> {
        let mut line = FilterLine::default();
        for word in &mut line.0 {
            *word = reader.fixed_u64()?;
        }
        Some(line)
    }
}

/// The line of a hash among `lines`.
pub(super) fn line_of(hash: u64, lines: u64) -> u64 {
    ((u128::from(hash) * u128::from(lines)) >> 64) as u64
}

/// Writes a filter.
pub(super) struct FilterWriter {
    pages: PageWriter<FilterLine>,
    lines: u64,
    line: FilterLine,
    line_no: u64,
}

impl FilterWriter {
    /// Begins a filter of this many keys.
    pub(super) fn new(keys: u64) -> FilterWriter {
        let lines = keys.saturating_mul(BITS_PER_KEY).div_ceil(LINE_BITS);
        FilterWriter { pages: PageWriter::new(), lines, line: FilterLine::default(), line_no: 0 }
    }

    /// Adds a hash, not smaller than the one before.
    pub(super) fn add(&mut self, out: &mut FileWriter, hash: u64) -> Result<(), Damage> {
        self.advance(out, line_of(hash, self.lines))?;
        self.line.add(hash);
        Ok(())
    }

    /// Ends the filter; gives its lines.
    pub(super) fn finish(mut self, out: &mut FileWriter) -> Result<u64, Damage> {
        self.advance(out, self.lines)?;
        self.pages.finish(out)?;
        Ok(self.lines)
    }

    fn advance(&mut self, out: &mut FileWriter, line_no: u64) -> Result<(), Damage> {
        while self.line_no < line_no {
            self.pages.push(out, &self.line)?;
            self.line = FilterLine::default();
            self.line_no += 1;
        }
        Ok(())
    }
}

/// The filter of an open run.
pub(super) struct Filter {
    lines: Vec<FilterLine>,
}

impl Filter {
    /// Reads the filter of this many lines at `offset`, which lie within the file.
    pub(super) fn open(source: &Arc<Source>, offset: u64, lines: u64) -> Result<Filter, Damage> {
        let mut cursor =
            Pages::<FilterLine>::new(Arc::clone(source), offset, lines).cursor(SCAN_PAGES);
        let mut filter = Filter { lines: Vec::with_capacity(lines as usize) };
        while let Some(line) = cursor.next()? {
            filter.lines.push(line);
        }
        Ok(filter)
    }

    /// Fetches the line of a hash into the cache; the result has no meaning.
    pub(super) fn touch(&self, hash: u64) -> u64 {
        let line = line_of(hash, self.lines.len() as u64);
        self.lines.get(line as usize).map_or(0, |line| line.0[0])
    }

    /// Whether a hash may have been added; `false` is certain.
    pub(super) fn may_have(&self, hash: u64) -> bool {
        let line = line_of(hash, self.lines.len() as u64);
        self.lines.get(line as usize).is_some_and(|line| line.may_have(hash))
    }
}
