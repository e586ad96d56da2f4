//! The engine's side: records collect in one buffer that has room for the header in front, so the
//! sync thread writes it as it is.

use dormouse_core::fact::Fact;
use dormouse_core::job::JobId;
use dormouse_core::place::Place;

use super::header::HEADER_BYTES;
use super::record::Record;
use crate::codec::{encode_fact, encode_put};

/// Buffers kept for reuse: one being filled, one being written, one on its way back.
const SPARE_MAX: usize = 3;
/// A buffer that grew beyond this for one large batch is not kept.
const SPARE_BYTES_MAX: usize = 8 << 20;

/// Collects the records of the next batch.
#[derive(Debug)]
pub struct BatchBuilder {
    bytes: Vec<u8>,
    records: u64,
    spare: Vec<Vec<u8>>,
}

/// A batch that has its number and waits to be written.
#[derive(Debug)]
pub struct SealedBatch {
    /// Its number.
    pub number: u64,
    /// How many records it has.
    pub records: u64,
    /// Room for the header, then the records.
    pub(super) bytes: Vec<u8>,
}

impl Default for BatchBuilder {
    fn default() -> BatchBuilder {
        BatchBuilder::new()
    }
}

impl BatchBuilder {
    /// Begins with nothing.
    pub fn new() -> BatchBuilder {
        BatchBuilder { bytes: vec![0; HEADER_BYTES], records: 0, spare: Vec::new() }
    }

    /// Adds a record.
    pub fn push(&mut self, record: &Record) {
        self.records += 1;
        record.encode(&mut self.bytes);
    }

    /// Adds a fact.
    pub fn push_fact(&mut self, fact: &Fact) {
        self.records += 1;
        encode_fact(fact, &mut self.bytes);
    }

    /// Adds a put whose job is already encoded; the job's id is that of its place.
    pub fn push_put(
        &mut self,
        at: &Place,
        left: Option<&Place>,
        left_bytes: u32,
        key_loser: Option<JobId>,
        payload: &[u8],
    ) {
        self.records += 1;
        encode_put(at, left, left_bytes, key_loser, payload, &mut self.bytes);
    }

    /// Bytes of the records so far.
    pub fn len(&self) -> usize {
        self.bytes.len() - HEADER_BYTES
    }

    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes the batch under this number and begins the next one.
    pub fn seal(&mut self, number: u64) -> SealedBatch {
        let mut next = self.spare.pop().unwrap_or_default();
        next.clear();
        next.resize(HEADER_BYTES, 0);
        let bytes = std::mem::replace(&mut self.bytes, next);
        SealedBatch { number, records: std::mem::take(&mut self.records), bytes }
    }

    /// Takes back the buffer of a batch that was written.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < SPARE_MAX && bytes.capacity() <= SPARE_BYTES_MAX {
            self.spare.push(bytes);
        }
    }
}

impl SealedBatch {
    /// Bytes it takes in the segment.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has no record.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() <= HEADER_BYTES
    }

    /// Its buffer, for [`BatchBuilder::recycle`].
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
