//! Splits the ids or keys of a page so that each script call reads few bytes of records.

use bytes::Bytes;
use dormouse_core::error::Error;

use super::call::ReplyParts;
use crate::wire::Reader;

/// Jobs per call: a script checks them in less than a millisecond.
const JOBS: usize = 100;
/// Bytes of records per call; a job of the greatest size, alone, takes two milliseconds.
pub(super) const BYTES: u64 = 128 << 10;

/// Ids or keys, each with the bytes that are read for it.
pub(super) type SizedNames = Vec<(Bytes, u64)>;

/// Reads names and sizes up to an empty name.
pub(super) fn read(reply: &mut ReplyParts) -> Result<SizedNames, Error> {
    let mut list = SizedNames::new();
    loop {
        let name = reply.text()?;
        if name.is_empty() {
            return Ok(list);
        }
        let bytes = Reader::new(&reply.text()?).u64()?;
        list.push((name, bytes));
    }
}

/// The names in portions for one call each.
pub(super) fn portions(list: &SizedNames) -> Vec<Vec<Bytes>> {
    let (mut all, mut portion, mut weight) = (Vec::new(), Vec::new(), 0);
    for (name, bytes) in list {
        let is_full = portion.len() == JOBS || weight + bytes > BYTES;
        if is_full && !portion.is_empty() {
            all.push(std::mem::take(&mut portion));
            weight = 0;
        }
        portion.push(name.clone());
        weight += bytes;
    }
    if !portion.is_empty() {
        all.push(portion);
    }
    all
}

/// The number of jobs per call if only their average size is known.
pub(super) fn at_once(average_bytes: u64, most: u64) -> u64 {
    (BYTES / average_bytes.max(1)).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_are_bounded_by_number_and_by_bytes() {
        let lengths = |list: &[u64]| -> Vec<usize> {
            let list = list.iter().map(|&bytes| (Bytes::from_static(b"x"), bytes)).collect();
            portions(&list).iter().map(Vec::len).collect()
        };
        assert_eq!(lengths(&[]), []);
        assert_eq!(lengths(&[100; 250]), [100, 100, 50]);
        assert_eq!(lengths(&[1 << 20; 3]), [1, 1, 1]);
        assert_eq!(lengths(&[10, BYTES - 10, 1]), [2, 1]);
    }
}
