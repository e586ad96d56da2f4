//! Sorts more records than memory may hold: in chunks, which go to a temporary file as soon as
//! there is a second one, and are merged when all have come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::vec;

use crate::damage::Damage;
use crate::disk::Disk;
use crate::sort::sort;

use super::file::{FileWriter, Source};
use super::page::{Cursor, Fixed, PageWriter, Pages};
use super::table::Digit;

/// Bytes of read-ahead of all chunks together.
const MERGE_BYTES: usize = 8 << 20;
/// Pages of read-ahead of one chunk.
const MERGE_PAGES_MAX: usize = 16;

/// Collects records in any order.
pub(super) struct Sorter<R> {
    disk: Arc<dyn Disk>,
    name: String,
    no: u64,
    chunk_records: usize,
    chunk: Vec<R>,
    spill: Option<Spill>,
    records: u64,
}

/// The temporary file: chunk after chunk. It is removed when this goes out of scope.
struct Spill {
    disk: Arc<dyn Disk>,
    out: FileWriter,
    /// Offset and records of each chunk.
    chunks: Vec<(u64, u64)>,
}

impl Drop for Spill {
    fn drop(&mut self) {
        // If it stays, the next start removes it: no manifest lists it.
        let _ = self.disk.remove(self.out.name());
    }
}

impl<R: Fixed + Digit> Sorter<R> {
    /// Keeps at most `chunk_records` in memory, and more in the file `name` of run `no`.
    pub(super) fn new(disk: &Arc<dyn Disk>, name: String, no: u64, chunk_records: usize) -> Self {
        let disk = Arc::clone(disk);
        Sorter { disk, name, no, chunk_records, chunk: Vec::new(), spill: None, records: 0 }
    }

    /// Records so far.
    pub(super) fn len(&self) -> u64 {
        self.records
    }

    /// Adds a record.
    #[inline]
    pub(super) fn push(&mut self, record: R) -> Result<(), Damage> {
        if self.chunk.len() >= self.chunk_records {
            self.spill_chunk()?;
        }
        self.chunk.push(record);
        self.records += 1;
        Ok(())
    }

    /// Ends the collection; gives all records in order.
    pub(super) fn finish(mut self) -> Result<SortedRecords<R>, Damage> {
        if self.spill.is_none() {
            sort(&mut self.chunk, R::digit, |record| *record);
            return Ok(SortedRecords::Memory(self.chunk.into_iter()));
        }
        self.spill_chunk()?;
        // The chunk's memory is free before the merge takes its own.
        drop(std::mem::take(&mut self.chunk));
        match self.spill {
            Some(spill) => Merge::begin(spill).map(SortedRecords::Merge),
            None => Ok(SortedRecords::Memory(Vec::new().into_iter())),
        }
    }

    fn spill_chunk(&mut self) -> Result<(), Damage> {
        sort(&mut self.chunk, R::digit, |record| *record);
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::create(&self.disk, &self.name, self.no)?),
        };
        spill.chunks.push((spill.out.position(), self.chunk.len() as u64));
        let mut pages = PageWriter::new();
        for record in &self.chunk {
            pages.push(&mut spill.out, record)?;
        }
        self.chunk.clear();
        pages.finish(&mut spill.out)
    }
}

impl Spill {
    fn create(disk: &Arc<dyn Disk>, name: &str, no: u64) -> Result<Spill, Damage> {
        let out = FileWriter::create_temporary(disk, name, no)?;
        Ok(Spill { disk: Arc::clone(disk), out, chunks: Vec::new() })
    }
}

/// Sorted records on their way out.
pub(super) enum SortedRecords<R> {
    /// All of them, when they fit.
    Memory(vec::IntoIter<R>),
    /// Chunks of a file.
    Merge(Merge<R>),
}

impl<R: Fixed + Ord> SortedRecords<R> {
    /// The next record.
    pub(super) fn next(&mut self) -> Result<Option<R>, Damage> {
        match self {
            SortedRecords::Memory(records) => Ok(records.next()),
            SortedRecords::Merge(merge) => merge.next(),
        }
    }
}

/// A merge of chunks.
pub(super) struct Merge<R> {
    heads: BinaryHeap<Reverse<(R, usize)>>,
    chunks: Vec<Cursor<R>>,
    /// Keeps the file until the merge is done.
    _spill: Spill,
}

impl<R: Fixed + Ord> Merge<R> {
    fn begin(mut spill: Spill) -> Result<Merge<R>, Damage> {
        spill.out.flush()?;
        let source = Arc::new(Source::open(&spill.disk, spill.out.name(), spill.out.no())?);
        let ahead = MERGE_BYTES / super::page::PAGE_BYTES / spill.chunks.len().max(1);
        let ahead = ahead.clamp(1, MERGE_PAGES_MAX);
        let mut heads = BinaryHeap::with_capacity(spill.chunks.len());
        let mut chunks = Vec::with_capacity(spill.chunks.len());
        for &(offset, records) in &spill.chunks {
            let mut cursor = Pages::<R>::new(Arc::clone(&source), offset, records).cursor(ahead);
            if let Some(head) = cursor.next()? {
                heads.push(Reverse((head, chunks.len())));
            }
            chunks.push(cursor);
        }
        Ok(Merge { heads, chunks, _spill: spill })
    }

    fn next(&mut self) -> Result<Option<R>, Damage> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((record, chunk)) = *head;
        match self.chunks[chunk].next()? {
            Some(next) => *head = Reverse((next, chunk)),
            None => drop(std::collections::binary_heap::PeekMut::pop(head)),
        }
        Ok(Some(record))
    }
}
