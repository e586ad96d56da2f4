//! Reads what a script packed.

use dormouse_core::error::Error;
use dormouse_core::job::JobId;

use super::malformed;

/// Reads numbers and bytes in sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    /// How many items of the run at the front have been read.
    items_read: u16,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, items_read: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) =
            self.bytes.split_at_checked(count).ok_or_else(|| malformed("it is truncated"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn number(&mut self, bytes: usize) -> Result<u64, Error> {
        Ok(self.bytes(bytes)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.number(1)? as u8)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        Ok(self.number(2)? as u16)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        Ok(self.number(4)? as u32)
    }

    pub(crate) fn u48(&mut self) -> Result<u64, Error> {
        self.number(6)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        self.number(8)
    }

    pub(crate) fn id(&mut self) -> Result<JobId, Error> {
        Ok(JobId(self.number(8)?))
    }

    /// The next item of a run: a count, then `length` bytes that describe each of its items.
    /// Returns those bytes and the index of the item in its run.
    pub(crate) fn run_item(&mut self, length: usize) -> Result<(Reader<'a>, u16), Error> {
        let mut run = *self;
        let (count, index) = (run.u16()?, self.items_read);
        let item = Reader::new(run.bytes(length)?);
        self.items_read += 1;
        if self.items_read >= count {
            *self = Reader::new(run.rest());
        }
        Ok((item, index))
    }

    /// Bytes after a u16 length.
    pub(crate) fn short_bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = self.u16()?;
        self.bytes(usize::from(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_read_one_by_one() {
        let bytes = [0, 2, 7, 0, 1, 8, 0, 3, 9, 5];
        let mut from = Reader::new(&bytes);
        let mut all = Vec::new();
        for _ in 0..6 {
            let (mut item, index) = from.run_item(1).unwrap();
            all.push((item.u8().unwrap(), index));
        }
        assert_eq!(all, [(7, 0), (7, 1), (8, 0), (9, 0), (9, 1), (9, 2)]);
        assert_eq!(from.rest(), [5]);
        assert!(from.run_item(1).is_err());
    }
}
