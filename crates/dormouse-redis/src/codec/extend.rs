//! Encodes the arguments of the script verb `extend` and decodes its reply.

use dormouse_core::job::Token;
use dormouse_core::op::ExtendReply;
use dormouse_core::refusal::{lease_lost, nothing_to_extend};
use dormouse_core::topic::TopicName;

use super::{Hold, ItemResult, held_back};
use crate::wire::flow::held_by;
use crate::wire::{Op, Reader, Writer, codes, malformed};

/// A lease to extend and by how many ms; without a number by its own length.
pub(crate) type LeaseExtension = (Token, Option<u64>);

pub(crate) fn op<'a>(leases: impl Iterator<Item = &'a LeaseExtension>) -> Op {
    let arg = |(token, ttr_ms): &LeaseExtension| {
        let mut to = Writer::default();
        to.id(token.id).u64(token.fence).u48(ttr_ms.unwrap_or(0)).take()
    };
    Op::new("extend", leases.map(arg).collect())
}

pub(crate) fn read(
    reply: &mut Reader<'_>,
    topic: &TopicName,
    token: Token,
) -> ItemResult<ExtendReply> {
    // The number: when the lease expires, or how many jobs the limit has leased.
    let (code, number, limit) = (reply.u8()?, reply.u48()?, held_by(reply.u8()?)?);
    let hold = Hold { limit, group: reply.short_bytes()?, leased: number, wait_ms: 0 };
    Ok(match code {
        codes::DONE => Ok(ExtendReply { expires_at: number }),
        codes::GONE => Err(nothing_to_extend(token.id)),
        codes::LOST => Err(lease_lost(token)),
        codes::HELD_BACK => Err(held_back(topic, &hold)?),
        _ => return Err(malformed("unknown result of an extend")),
    })
}
