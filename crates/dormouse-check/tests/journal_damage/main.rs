//! The journal under damage and power cuts.
//!
//! Damage: whatever single byte is wrong, wherever a file is cut, the answer is either corruption
//! with file and offset, or a torn tail that loses nothing that was synced. Power cuts: whatever a
//! plain one leaves, it is never taken for corruption, all that was synced is found, and what is
//! found is what was written, in order.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod damage;
mod manifest;
mod power;

use bytes::Bytes;
use dormouse_core::fact::Fact;
use dormouse_disk::disk::Disk;
use dormouse_disk::journal::{BatchBuilder, Boot, CheckpointHead, Plan, Record, SealedBatch};

/// A record that carries a number and has this many bytes more.
fn numbered(number: u64, bytes: usize) -> Record {
    let mut name = number.to_be_bytes().to_vec();
    name.resize(8 + bytes, number as u8);
    Record::Fact(Fact::LockFreed { name: Bytes::from(name) })
}

fn number_of(record: &Record) -> Option<u64> {
    match record {
        Record::Fact(Fact::LockFreed { name }) => {
            Some(u64::from_be_bytes(name[..8].try_into().unwrap()))
        }
        _ => None,
    }
}

fn boot(last_batch: u64) -> Record {
    Record::Boot(Boot { last_batch, ..Boot::default() })
}

fn sealed(number: u64, records: &[Record]) -> SealedBatch {
    let mut builder = BatchBuilder::new();
    records.iter().for_each(|record| builder.push(record));
    builder.seal(number)
}

/// The numbers of the records that a start would find.
fn replayed(disk: &dyn Disk, plan: &Plan) -> Vec<u64> {
    let mut numbers = Vec::new();
    let replay = plan.replay(disk, &mut |_, record| {
        numbers.extend(number_of(&record));
        Ok(())
    });
    replay.unwrap();
    numbers
}

fn checkpoint() -> Record {
    Record::Checkpoint(CheckpointHead::default())
}
