//! extend, in words of the script.

use dormouse_core::error::Error;
use dormouse_core::job::Token;
use dormouse_core::op::Extended;
use dormouse_core::refusal::{lease_lost, nothing_to_extend};

use crate::wire::{Op, Reader, Writer, strange};

/// A lease to be prolonged, checked; without a ttr by its own length.
pub(crate) type LeaseExtension = (Token, Option<u64>);

pub(crate) fn op<'a>(leases: impl Iterator<Item = &'a LeaseExtension>) -> Op {
    let arg = |(token, ttr_ms): &LeaseExtension| {
        let mut to = Writer::default();
        to.id(token.id).u64(token.fence).u48(ttr_ms.unwrap_or(0)).take()
    };
    Op::new("extend", leases.map(arg).collect())
}

pub(crate) fn read(
    answer: &mut Reader<'_>,
    token: Token,
) -> Result<Result<Extended, Error>, Error> {
    let (outcome, expires_at) = (answer.u8()?, answer.u48()?);
    Ok(match outcome {
        0 => Ok(Extended { expires_at }),
        2 => Err(nothing_to_extend(token.id)),
        3 => Err(lease_lost(token)),
        _ => return Err(strange("a lease has no such end")),
    })
}
