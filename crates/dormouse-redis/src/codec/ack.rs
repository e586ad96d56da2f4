//! Encodes the arguments of the script verb `ack` and decodes its reply.

use std::collections::HashSet;

use dormouse_core::error::Error;
use dormouse_core::job::Token;
use dormouse_core::op::EndReply;
use dormouse_core::refusal::lease_lost;

use super::ItemResult;
use crate::wire::{Op, Reader, Writer, codes, flag, malformed};

pub(crate) fn op(tokens: impl Iterator<Item = Token>) -> Op {
    let (mut to, mut ids) = (Writer::default(), HashSet::new());
    let mut repeats = false;
    for token in tokens {
        to.id(token.id).u64(token.fence);
        repeats |= !ids.insert(token.id);
    }
    Op::new("ack", vec![to.take(), flag(repeats)])
}

pub(crate) fn read(reply: &mut Reader<'_>, token: Token) -> Result<LeaseEnd, Error> {
    let (mut reply, _) = reply.run_item(5)?;
    let ended = end_reply(reply.u8()?, token)?;
    Ok(LeaseEnd { ended, due_at: 0, attempts: reply.u32()? })
}

/// The end of a lease. `due_at` is when the job is due again or died; 0 = it is gone.
#[derive(Debug)]
pub(crate) struct LeaseEnd {
    pub(crate) ended: Result<EndReply, Error>,
    pub(crate) due_at: u64,
    pub(crate) attempts: u32,
}

/// Decodes the result code that ack, nack and release share.
pub(crate) fn end_reply(code: u8, token: Token) -> ItemResult<EndReply> {
    Ok(match code {
        codes::DONE => Ok(EndReply::Done),
        codes::DIED => Ok(EndReply::Dead),
        codes::GONE => Ok(EndReply::Gone),
        codes::LOST => Err(lease_lost(token)),
        _ => return Err(malformed("unknown result of a lease")),
    })
}
