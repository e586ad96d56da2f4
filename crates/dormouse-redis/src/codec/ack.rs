//! ack, in words of the script.

use std::collections::HashSet;

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::Token;
use dormouse_core::op::Ended;
use dormouse_core::refusal::lease_lost;

use crate::wire::{Op, Reader, Writer, strange};

pub(crate) fn op(tokens: impl Iterator<Item = Token>) -> Op {
    let (mut to, mut ids) = (Writer::default(), HashSet::new());
    let mut repeats = false;
    for token in tokens {
        to.id(token.id).u64(token.fence);
        repeats |= !ids.insert(token.id);
    }
    Op::new("ack", vec![to.take(), Bytes::from_static(if repeats { b"1" } else { b"" })])
}

/// What became of the lease that this token proves.
pub(crate) fn read(answer: &mut Reader<'_>, token: Token) -> Result<LeaseEnd, Error> {
    let (mut answer, _) = answer.of_run(5)?;
    let ended = ended(answer.u8()?, token)?;
    Ok(LeaseEnd { ended, due_at: 0, attempts: answer.u32()? })
}

/// What became of a lease: how it ended, when the job is due if it is there, its attempts.
#[derive(Debug)]
pub(crate) struct LeaseEnd {
    pub(crate) ended: Result<Ended, Error>,
    pub(crate) due_at: u64,
    pub(crate) attempts: u32,
}

/// The outcome that ack, nack, release and kill share.
pub(crate) fn ended(outcome: u8, token: Token) -> Result<Result<Ended, Error>, Error> {
    Ok(match outcome {
        0 => Ok(Ended::Done),
        1 => Ok(Ended::Dead),
        2 => Ok(Ended::Gone),
        3 => Err(lease_lost(token)),
        _ => return Err(strange("a lease has no such end")),
    })
}
