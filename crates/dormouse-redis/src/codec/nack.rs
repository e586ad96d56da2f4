//! nack and release, in words of the script.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::Token;

use super::ack::{LeaseEnd, ended};
use crate::wire::{Op, Reader, Writer};

const GIVEN_DELAY: u8 = 1;
pub(super) const GIVEN_PRIORITY: u8 = 2;
pub(super) const GIVEN_ERROR: u8 = 4;
const UNCOUNTED: u8 = 8;

/// How a lease is to end, checked.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub(crate) token: Token,
    pub(crate) delay_ms: Option<u64>,
    pub(crate) priority: Option<u32>,
    pub(crate) error: Option<Bytes>,
    /// Nobody said so, its holder is gone: it does not count as a release.
    pub(crate) is_uncounted: bool,
}

/// `verb` is nack or release.
pub(crate) fn op<'a>(verb: &'static str, endings: impl Iterator<Item = &'a Ending>) -> Op {
    let mut args = Vec::new();
    for ending in endings {
        let mut given = 0;
        given |= if ending.delay_ms.is_some() { GIVEN_DELAY } else { 0 };
        given |= if ending.priority.is_some() { GIVEN_PRIORITY } else { 0 };
        given |= if ending.error.is_some() { GIVEN_ERROR } else { 0 };
        given |= if ending.is_uncounted { UNCOUNTED } else { 0 };
        let mut to = Writer::default();
        to.id(ending.token.id).u64(ending.token.fence).u8(given);
        to.u48(ending.delay_ms.unwrap_or(0)).u32(ending.priority.unwrap_or(0));
        args.push(to.take());
        args.push(ending.error.clone().unwrap_or_default());
    }
    Op::new(verb, args)
}

/// What became of the lease that this token proves.
pub(crate) fn read(answer: &mut Reader<'_>, token: Token) -> Result<LeaseEnd, Error> {
    let ended = ended(answer.u8()?, token)?;
    Ok(LeaseEnd { ended, due_at: answer.u48()?, attempts: answer.u32()? })
}
