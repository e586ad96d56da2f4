//! Encodes the arguments of the script verbs `nack` and `release` and decodes their replies.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::Token;

use super::ack::{LeaseEnd, end_reply};
use crate::wire::codes::{GIVEN_DELAY, GIVEN_ERROR, GIVEN_PRIORITY, UNCOUNTED};
use crate::wire::{Op, Reader, Writer};

/// A nack or release whose fields have been checked.
#[derive(Clone, Debug)]
pub(crate) struct EndRequest {
    pub(crate) token: Token,
    pub(crate) delay_ms: Option<u64>,
    pub(crate) priority: Option<u32>,
    pub(crate) error: Option<Bytes>,
    /// Its holder is gone: it does not count as a release.
    pub(crate) is_uncounted: bool,
}

impl EndRequest {
    /// Ends the lease, and gives nothing else.
    pub(crate) fn of(token: Token) -> EndRequest {
        EndRequest { token, delay_ms: None, priority: None, error: None, is_uncounted: false }
    }
}

/// `verb` is `nack` or `release`.
pub(crate) fn op<'a>(verb: &'static str, endings: impl Iterator<Item = &'a EndRequest>) -> Op {
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

pub(crate) fn read(reply: &mut Reader<'_>, token: Token) -> Result<LeaseEnd, Error> {
    let ended = end_reply(reply.u8()?, token)?;
    Ok(LeaseEnd { ended, due_at: reply.u48()?, attempts: reply.u32()? })
}
