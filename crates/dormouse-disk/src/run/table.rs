//! Sorted records with fences in memory: one page read finds a record among a hundred million.

use std::sync::Arc;

use crate::damage::Damage;

use super::file::{FileWriter, Source};
use super::page::{Cursor, Fixed, PageWriter, Pages, bytes_for, per_page};

/// Fences a table keeps at most.
const FENCES_MAX: u64 = 1 << 20;
/// Pages read at once when a table is read through.
pub(super) const SCAN_PAGES: usize = 16;

/// A record of a table.
pub(super) trait Record: Fixed + Ord {
    /// The search key. Records sort by it first.
    type Key: Fixed + Ord;
    /// This record's.
    fn key(&self) -> Self::Key;
}

/// A record that sorts by a number first.
pub(super) trait Digit: Ord + Copy {
    /// That number: records with a smaller one sort before others.
    fn digit(&self) -> u64;
}

/// Pages per fence in a table of this many records.
fn stride<R: Record>(records: u64) -> u64 {
    records.div_ceil(per_page::<R>()).div_ceil(FENCES_MAX).max(1)
}

/// Records per fence.
fn span<R: Record>(stride: u64) -> u64 {
    stride.saturating_mul(per_page::<R>())
}

/// Bytes of a table of this many records, fences included; `None` if no file can hold it.
pub(super) fn table_bytes<R: Record>(records: u64) -> Option<u64> {
    let fences = records.div_ceil(span::<R>(stride::<R>(records)));
    bytes_for::<R>(records)?.checked_add(bytes_for::<R::Key>(fences)?)
}

/// Writes a table.
pub(super) struct TableWriter<R: Record> {
    pages: PageWriter<R>,
    fences: Vec<R::Key>,
    span: u64,
    records: u64,
}

impl<R: Record> TableWriter<R> {
    /// Begins a table that will have exactly this many records.
    pub(super) fn new(records: u64) -> TableWriter<R> {
        TableWriter::with_stride(stride::<R>(records))
    }

    fn with_stride(stride: u64) -> TableWriter<R> {
        TableWriter {
            pages: PageWriter::new(),
            fences: Vec::new(),
            span: span::<R>(stride),
            records: 0,
        }
    }

    /// Appends a record, not smaller than the one before.
    pub(super) fn push(&mut self, out: &mut FileWriter, record: &R) -> Result<(), Damage> {
        if self.records.is_multiple_of(self.span) {
            self.fences.push(record.key());
        }
        self.records += 1;
        self.pages.push(out, record)
    }

    /// Ends the table with its fences.
    pub(super) fn finish(self, out: &mut FileWriter) -> Result<(), Damage> {
        self.pages.finish(out)?;
        let mut pages = PageWriter::new();
        for fence in &self.fences {
            pages.push(out, fence)?;
        }
        pages.finish(out)
    }
}

/// A table of an open run.
pub(super) struct Table<R: Record> {
    pages: Pages<R>,
    fences: Vec<R::Key>,
    span: u64,
}

impl<R: Record> Table<R> {
    /// Opens the table of this many records at `offset`, reading its fences.
    pub(super) fn open(
        source: &Arc<Source>,
        offset: u64,
        records: u64,
    ) -> Result<Table<R>, Damage> {
        Table::open_with_stride(source, offset, records, stride::<R>(records))
    }

    fn open_with_stride(
        source: &Arc<Source>,
        offset: u64,
        records: u64,
        stride: u64,
    ) -> Result<Table<R>, Damage> {
        let pages = Pages::new(Arc::clone(source), offset, records);
        let span = span::<R>(stride);
        let fences_at = bytes_for::<R>(records).and_then(|bytes| offset.checked_add(bytes));
        let fences_at = fences_at.ok_or_else(|| source.corrupt(offset, "impossible length"))?;
        let fence_pages: Pages<R::Key> =
            Pages::new(Arc::clone(source), fences_at, records.div_ceil(span));
        let mut fences = Vec::new();
        let mut cursor = fence_pages.cursor(SCAN_PAGES);
        while let Some(fence) = cursor.next()? {
            fences.push(fence);
        }
        Ok(Table { pages, fences, span })
    }

    /// Records of the table.
    pub(super) fn len(&self) -> u64 {
        self.pages.len()
    }

    /// Reads all records in order.
    pub(super) fn scan(&self) -> Cursor<R> {
        self.pages.cursor(SCAN_PAGES)
    }

    /// The record at `index`, which is below `len`.
    pub(super) fn get(&self, index: u64) -> Result<R, Damage> {
        self.pages.cursor(1).at(index)
    }

    /// The last record whose key is not above `key`, with its index.
    pub(super) fn floor(&self, key: &R::Key) -> Result<Option<(u64, R)>, Damage> {
        let fences = self.fences.partition_point(|fence| fence <= key);
        let Some(fence) = fences.checked_sub(1) else { return Ok(None) };
        let mut cursor = self.pages.cursor(1);
        let above = cursor.search(self.behind(fence), |record| record.key() <= *key)?;
        // Above zero, because the fence's own record is not above the key.
        let Some(index) = above.checked_sub(1) else { return Ok(None) };
        Ok(Some((index, cursor.at(index)?)))
    }

    /// Reads on from the first record whose key is not below `key`.
    pub(super) fn from(&self, key: &R::Key) -> Result<Cursor<R>, Damage> {
        let fence = self.fences.partition_point(|fence| fence < key).saturating_sub(1);
        let mut cursor = self.pages.cursor(1);
        let first = cursor.search(self.behind(fence), |record| record.key() < *key)?;
        cursor.go_to(first);
        Ok(cursor)
    }

    /// Whether every fence is the key of its record, when read through.
    pub(super) fn fence_agrees(&self, index: u64, key: &R::Key) -> bool {
        !index.is_multiple_of(self.span)
            || self.fences.get((index / self.span) as usize) == Some(key)
    }

    /// The records from one fence to the next.
    fn behind(&self, fence: usize) -> std::ops::Range<u64> {
        let start = (fence as u64).saturating_mul(self.span).min(self.len());
        start..start.saturating_add(self.span).min(self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Chance, MemDisk};
    use super::*;
    use dormouse_core::job::JobId;

    use super::super::Loc;
    use super::super::record::IdRecord;

    /// Ids with repetitions and gaps, over many pages.
    fn records(chance: &mut Chance) -> Vec<IdRecord> {
        let mut id = 10;
        (0..3_000 + chance.below(2_000) as u32)
            .map(|block| {
                id += chance.below(3) * chance.below(2);
                IdRecord::new(JobId(id), Loc { block, index: 0 }, false)
            })
            .collect()
    }

    #[test]
    fn sparse_fences_find_what_dense_ones_find() {
        for stride in 1..6 {
            let mut chance = Chance::new(stride);
            let records = records(&mut chance);
            let disk = MemDisk::shared();
            let mut out = FileWriter::create(&disk, "table", 5).unwrap();
            let mut writer = TableWriter::with_stride(stride);
            for record in &records {
                writer.push(&mut out, record).unwrap();
            }
            writer.finish(&mut out).unwrap();
            out.flush().unwrap();
            let source = Arc::new(Source::open(&disk, "table", 5).unwrap());
            let len = records.len() as u64;
            let table: Table<IdRecord> = Table::open_with_stride(&source, 0, len, stride).unwrap();
            let last = records.last().unwrap().id.0;
            for id in 0..last + 5 {
                let from = records.partition_point(|record| record.id.0 < id);
                let found = table.from(&id).unwrap().next().unwrap();
                assert_eq!(found, records.get(from).copied());
                let above = records.partition_point(|record| record.id.0 <= id);
                let floor = above.checked_sub(1).map(|index| (index as u64, records[index]));
                assert_eq!(table.floor(&id).unwrap(), floor);
            }
        }
    }

    #[test]
    fn strides_bound_the_fences() {
        let full_pages = |pages: u64| pages * per_page::<IdRecord>();
        assert_eq!(stride::<IdRecord>(0), 1);
        assert_eq!(stride::<IdRecord>(full_pages(FENCES_MAX)), 1);
        assert_eq!(stride::<IdRecord>(full_pages(FENCES_MAX) + 1), 2);
        assert_eq!(stride::<IdRecord>(full_pages(10 * FENCES_MAX)), 10);
        assert_eq!(table_bytes::<IdRecord>(u64::MAX), None);
    }
}
