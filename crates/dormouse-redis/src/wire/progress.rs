//! A job's progress, as `write_progress` in job.lua packs it.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::Progress;

use super::Reader;
use super::codes::KEY_LOST;

/// The progress of a job that was never reserved, kicked or killed: Redis stores none.
pub(crate) fn fresh(bytes: u32, priority: u32) -> Progress {
    Progress { priority, bytes, ..Progress::default() }
}

/// `lapsed`: its lease has expired, which no script has recorded yet.
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
