//! Encodes the arguments of the script verb `purge` and decodes its reply.

use bytes::Bytes;
use dormouse_core::error::Error;

use crate::wire::{Op, Reader};

/// The part of a purge that one script call has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PurgeProgress {
    pub(crate) removed: u64,
    /// Where the next call continues; `None` = nothing is left.
    pub(crate) cursor: Option<Bytes>,
}

/// Starts a purge, or continues it at the cursor of the last reply.
pub(crate) fn op(cursor: Option<Bytes>) -> Op {
    Op::new("purge", vec![cursor.unwrap_or_default()])
}

pub(crate) fn read(reply: &mut Reader<'_>) -> Result<PurgeProgress, Error> {
    let (removed, more) = (reply.u64()?, reply.u8()? == 1);
    let cursor = Bytes::copy_from_slice(reply.rest());
    Ok(PurgeProgress { removed, cursor: more.then_some(cursor) })
}
