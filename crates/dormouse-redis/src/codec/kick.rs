//! kick, in words of the script.

use bytes::Bytes;
use dormouse_core::error::Error;

use crate::wire::{Op, Reader};

/// A script does no more than so many jobs of what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Portion {
    pub(crate) count: u64,
    /// Asking for the rest will do more.
    pub(crate) more: bool,
}

pub(crate) fn op(max: usize) -> Op {
    Op::new("kick", vec![Bytes::from(max.to_string())])
}

pub(crate) fn read(answer: &mut Reader<'_>) -> Result<Portion, Error> {
    Ok(Portion { count: u64::from(answer.u32()?), more: answer.u8()? == 1 })
}
