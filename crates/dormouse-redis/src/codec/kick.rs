//! Encodes the arguments of the script verb `kick` and decodes its reply.

use dormouse_core::error::Error;

use crate::wire::{Op, Reader, number};

/// The part of a request that one script call has done: it changes a bounded number of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Portion {
    pub(crate) count: u64,
    /// Another call will change more.
    pub(crate) more: bool,
}

pub(crate) fn op(max: usize) -> Op {
    Op::new("kick", vec![number(max as u64)])
}

pub(crate) fn read(reply: &mut Reader<'_>) -> Result<Portion, Error> {
    Ok(Portion { count: u64::from(reply.u32()?), more: reply.u8()? == 1 })
}
