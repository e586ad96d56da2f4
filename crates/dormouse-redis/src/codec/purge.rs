//! purge, in words of the script.

use bytes::Bytes;
use dormouse_core::error::Error;

use crate::wire::{Op, Reader};

/// What a purge has done so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Purged {
    pub(crate) removed: u64,
    /// What to go on with; `None` = nothing is left to do.
    pub(crate) rest: Option<Bytes>,
}

/// Begins, or goes on with what the last answer gave.
pub(crate) fn op(rest: Option<Bytes>) -> Op {
    Op::new("purge", vec![rest.unwrap_or_default()])
}

pub(crate) fn read(answer: &mut Reader<'_>) -> Result<Purged, Error> {
    let (removed, more) = (answer.u64()?, answer.u8()? == 1);
    let rest = Bytes::copy_from_slice(answer.rest());
    Ok(Purged { removed, rest: more.then_some(rest) })
}
