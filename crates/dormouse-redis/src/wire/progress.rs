//! A job's progress, as `write_progress` in lib.lua packs it.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::Progress;

use super::Reader;

/// The key has passed to a newer job.
pub(crate) const KEY_LOST: u8 = 2;

/// The progress of a job that has none in Redis yet.
pub(crate) fn fresh(bytes: u32, priority: u32) -> Progress {
    Progress { priority, bytes, ..Progress::default() }
}

/// A job's progress. `lapsed` = its lease ran out, which nobody has written down yet.
pub(crate) fn decode(text: &[u8], lapsed: bool) -> Result<Progress, Error> {
    let mut from = Reader::new(text);
    let mut progress = Progress {
        fence: from.u64()?,
        attempts: from.u32()?,
        priority: from.u32()?,
        reserves: from.u32()?,
        expiries: from.u32()?,
        releases: from.u32()?,
        kills: from.u32()?,
        kicks: from.u32()?,
        bytes: from.u32()?,
        lapsed,
        ..Progress::default()
    };
    from.u48()?;
    progress.key_lost = from.u8()? & KEY_LOST != 0;
    if lapsed {
        progress.expiries = progress.expiries.saturating_add(1);
    }
    if !from.is_empty() {
        progress.error = Some(Bytes::copy_from_slice(from.rest()));
    }
    Ok(progress)
}
