//! Fixed-width records in checksummed pages, of which tables, filters and spilled chunks are made.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::codec::Reader;
use crate::damage::Damage;
use crate::pace;

use super::file::{FileWriter, Source};
use super::format::CRC_BYTES;

/// Bytes of every page but the last of a section.
pub(super) const PAGE_BYTES: usize = 4096;

/// Something that takes the same number of bytes whatever its value.
pub(super) trait Fixed: Copy {
    /// That number.
    const WIDTH: usize;
    /// Appends exactly `WIDTH` bytes.
    fn put(&self, out: &mut Vec<u8>);
    /// Reads what `put` wrote; `None` if the bytes are not a record.
    fn get(reader: &mut Reader<'_>) -> Option<Self>;
}

/// Records of a full page.
pub(super) const fn per_page<T: Fixed>() -> u64 {
    ((PAGE_BYTES - CRC_BYTES) / T::WIDTH) as u64
}

/// Bytes of the pages of this many records; `None` if no file can hold them.
pub(super) fn bytes_for<T: Fixed>(records: u64) -> Option<u64> {
    let full = (records / per_page::<T>()).checked_mul(PAGE_BYTES as u64)?;
    match records % per_page::<T>() {
        0 => Some(full),
        rest => full.checked_add(CRC_BYTES as u64 + rest * T::WIDTH as u64),
    }
}

/// Writes records as pages.
pub(super) struct PageWriter<T> {
    page: Vec<u8>,
    record: PhantomData<T>,
}

impl<T: Fixed> PageWriter<T> {
    /// Begins a section.
    pub(super) fn new() -> PageWriter<T> {
        PageWriter { page: Vec::with_capacity(PAGE_BYTES), record: PhantomData }
    }

    /// Appends a record.
    pub(super) fn push(&mut self, out: &mut FileWriter, record: &T) -> Result<(), Damage> {
        record.put(&mut self.page);
        if self.page.len() + T::WIDTH > PAGE_BYTES - CRC_BYTES {
            self.page.resize(PAGE_BYTES - CRC_BYTES, 0);
            self.end_page(out)?;
        }
        Ok(())
    }

    /// Ends the section.
    pub(super) fn finish(mut self, out: &mut FileWriter) -> Result<(), Damage> {
        if self.page.is_empty() { Ok(()) } else { self.end_page(out) }
    }

    fn end_page(&mut self, out: &mut FileWriter) -> Result<(), Damage> {
        out.append_frame(&[&self.page])?;
        self.page.clear();
        pace::rest();
        Ok(())
    }
}

/// A section of records in a file.
pub(super) struct Pages<T> {
    source: Arc<Source>,
    offset: u64,
    records: u64,
    record: PhantomData<T>,
}

impl<T: Fixed> Pages<T> {
    /// The section of this many records from `offset` on.
    pub(super) fn new(source: Arc<Source>, offset: u64, records: u64) -> Pages<T> {
        Pages { source, offset, records, record: PhantomData }
    }

    /// Records of the section.
    pub(super) fn len(&self) -> u64 {
        self.records
    }

    /// Reads the section, `ahead` pages at once.
    pub(super) fn cursor(&self, ahead: usize) -> Cursor<T> {
        Cursor {
            pages: Pages::new(Arc::clone(&self.source), self.offset, self.records),
            ahead: ahead as u64,
            buffer: Vec::new(),
            loaded: 0..0,
            next: 0,
        }
    }
}

/// A position in a section, with the pages around it.
pub(super) struct Cursor<T> {
    pages: Pages<T>,
    ahead: u64,
    buffer: Vec<u8>,
    /// The pages in the buffer, by number.
    loaded: std::ops::Range<u64>,
    next: u64,
}

impl<T: Fixed> Cursor<T> {
    /// The record after the last one given.
    pub(super) fn next(&mut self) -> Result<Option<T>, Damage> {
        if self.next >= self.pages.records {
            return Ok(None);
        }
        let record = self.at(self.next)?;
        self.next += 1;
        Ok(Some(record))
    }

    /// Makes `index` the next record.
    pub(super) fn go_to(&mut self, index: u64) {
        self.next = index;
    }

    /// The index of the next record.
    pub(super) fn position(&self) -> u64 {
        self.next
    }

    /// The record at `index`, wherever the cursor stands.
    pub(super) fn at(&mut self, index: u64) -> Result<T, Damage> {
        let page = index / per_page::<T>();
        if !self.loaded.contains(&page) {
            self.load(page)?;
        }
        let in_buffer = (page - self.loaded.start) as usize * PAGE_BYTES;
        let start = in_buffer + CRC_BYTES + (index % per_page::<T>()) as usize * T::WIDTH;
        let bytes = self.buffer.get(start..start + T::WIDTH).unwrap_or(&[]);
        T::get(&mut Reader::new(bytes)).ok_or_else(|| {
            let offset = self.pages.offset + page * PAGE_BYTES as u64;
            self.pages.source.corrupt(offset, "a record of this page stands for nothing")
        })
    }

    /// The first index in `range` whose record is not `below`, all below ones being in front.
    pub(super) fn search(
        &mut self,
        range: std::ops::Range<u64>,
        below: impl Fn(&T) -> bool,
    ) -> Result<u64, Damage> {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if below(&self.at(middle)?) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    fn load(&mut self, page: u64) -> Result<(), Damage> {
        let first_record = page * per_page::<T>();
        let records = self.pages.records.saturating_sub(first_record);
        let len = bytes_for::<T>(records.min(self.ahead * per_page::<T>())).unwrap_or(0);
        let offset = self.pages.offset + page * PAGE_BYTES as u64;
        // Nothing counts as loaded until all of it is checked.
        self.loaded = 0..0;
        self.buffer.resize(len as usize, 0);
        self.pages.source.read_into(offset, &mut self.buffer)?;
        for (frame, at) in self.buffer.chunks(PAGE_BYTES).zip((offset..).step_by(PAGE_BYTES)) {
            self.pages.source.check_frame(at, frame)?;
        }
        self.loaded = page..page + self.buffer.len().div_ceil(PAGE_BYTES) as u64;
        if self.ahead > 1 {
            pace::rest();
        }
        Ok(())
    }
}
