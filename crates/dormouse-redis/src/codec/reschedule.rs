//! Encodes the arguments of the script verb `reschedule` and decodes its reply.

use dormouse_core::op::{ChangeReply, Reschedule, Target};
use dormouse_core::refusal::cannot_move;

use super::{ItemResult, target};
use crate::wire::{Op, Reader, Writer, codes};

/// The fields of `moves` have been checked.
pub(crate) fn op(moves: &[Reschedule]) -> Op {
    let due = |item: &Reschedule| {
        let (clock, value_ms) = match (item.delay_ms, item.at_ms) {
            (_, Some(at_ms)) => (codes::CLOCK_AT, at_ms),
            (Some(delay_ms), None) => (codes::CLOCK_DELAY, delay_ms),
            (None, None) => (codes::CLOCK_NOW, 0),
        };
        Writer::default().u8(clock).u48(u64::try_from(value_ms).unwrap_or(0)).take()
    };
    let args = moves.iter().flat_map(|item| [target::arg(&item.target), due(item)]);
    Op::new("reschedule", args.collect())
}

pub(crate) fn read(reply: &mut Reader<'_>, target: &Target) -> ItemResult<ChangeReply> {
    target::change_reply(reply, target, cannot_move)
}
