//! A job's progress: one varint of flags, then the fields whose flag is set.
//!
//! `key_lost` is not here: its bit stands in the flags of the enclosing record, where
//! [`super::payload_key`] finds it first.

use bytes::Bytes;
use dormouse_core::job::Progress;

use super::raw::{Reader, put_bytes, put_varint};

/// The priority that costs nothing.
const PRIORITY_IMPLIED: u32 = 1_024;

// The seven flags a plain reserve or nack needs come first: they fit into one byte.
const LAPSED: u64 = 1;
const FENCE: u64 = 1 << 1;
const ATTEMPTS: u64 = 1 << 2;
const RESERVES: u64 = 1 << 3;
const BYTES: u64 = 1 << 4;
const PRIORITY: u64 = 1 << 5;
const RELEASES: u64 = 1 << 6;
const EXPIRIES: u64 = 1 << 7;
const KILLS: u64 = 1 << 8;
const KICKS: u64 = 1 << 9;
const ERROR: u64 = 1 << 10;
const KNOWN: u64 = (1 << 11) - 1;

/// Which fields differ from a fresh job's whose content has `bytes_implied` bytes.
#[inline]
pub(super) fn flags(progress: &Progress, bytes_implied: u32) -> u64 {
    let set = |differs: bool, flag: u64| if differs { flag } else { 0 };
    set(progress.lapsed, LAPSED)
        | set(progress.fence != 0, FENCE)
        | set(progress.attempts != 0, ATTEMPTS)
        | set(progress.reserves != 0, RESERVES)
        | set(progress.bytes != bytes_implied, BYTES)
        | set(progress.priority != PRIORITY_IMPLIED, PRIORITY)
        | set(progress.releases != 0, RELEASES)
        | set(progress.expiries != 0, EXPIRIES)
        | set(progress.kills != 0, KILLS)
        | set(progress.kicks != 0, KICKS)
        | set(progress.error.is_some(), ERROR)
}

/// Appends the flags and the fields they announce.
#[inline]
pub(super) fn encode_progress(progress: &Progress, flags: u64, out: &mut Vec<u8>) {
    put_varint(flags, out);
    if flags & FENCE != 0 {
        put_varint(progress.fence, out);
    }
    let numbers = [
        (ATTEMPTS, progress.attempts),
        (RESERVES, progress.reserves),
        (BYTES, progress.bytes),
        (PRIORITY, progress.priority),
        (RELEASES, progress.releases),
        (EXPIRIES, progress.expiries),
        (KILLS, progress.kills),
        (KICKS, progress.kicks),
    ];
    for (flag, number) in numbers {
        if flags & flag != 0 {
            put_varint(u64::from(number), out);
        }
    }
    if let Some(error) = &progress.error {
        put_bytes(error, out);
    }
}

/// Reads what [`encode_progress`] wrote; `key_lost` is left false. `bytes` is `None` if it is the
/// implied number, which a payload knows only after its body.
#[inline]
pub(super) fn decode_progress(reader: &mut Reader<'_>) -> Option<(Progress, Option<u32>)> {
    let flags = reader.varint()?;
    if flags & !KNOWN != 0 {
        return None;
    }
    let mut progress = fresh(0);
    progress.lapsed = flags & LAPSED != 0;
    if flags & FENCE != 0 {
        progress.fence = reader.varint()?;
    }
    let numbers = [
        (ATTEMPTS, &mut progress.attempts),
        (RESERVES, &mut progress.reserves),
        (BYTES, &mut progress.bytes),
        (PRIORITY, &mut progress.priority),
        (RELEASES, &mut progress.releases),
        (EXPIRIES, &mut progress.expiries),
        (KILLS, &mut progress.kills),
        (KICKS, &mut progress.kicks),
    ];
    for (flag, number) in numbers {
        if flags & flag != 0 {
            *number = reader.varint_u32()?;
        }
    }
    if flags & ERROR != 0 {
        progress.error = Some(Bytes::copy_from_slice(reader.bytes()?));
    }
    let bytes = (flags & BYTES != 0).then_some(progress.bytes);
    Some((progress, bytes))
}

/// The progress of a job to which nothing happened.
pub(super) fn fresh(bytes: u32) -> Progress {
    Progress { priority: PRIORITY_IMPLIED, bytes, ..Progress::default() }
}
