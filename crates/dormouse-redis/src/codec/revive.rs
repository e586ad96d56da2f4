//! Encodes the arguments of the script verbs `revive` (given jobs) and `revive_topic` (the oldest
//! dead jobs of a partition) and decodes their replies.

use dormouse_core::error::Error;
use dormouse_core::op::{ChangeReply, Target};
use dormouse_core::refusal::not_dead;

use super::kick::Portion;
use super::{ItemResult, target};
use crate::wire::{Op, Reader, codes, malformed, number};

pub(crate) fn op(targets: &[Target]) -> Op {
    Op::new("revive", targets.iter().map(target::arg).collect())
}

pub(crate) fn read(reply: &mut Reader<'_>, target: &Target) -> ItemResult<ChangeReply> {
    target::change_reply(reply, target, not_dead)
}

pub(crate) fn op_oldest(max: usize) -> Op {
    Op::new("revive_topic", vec![number(max as u64)])
}

pub(crate) fn read_oldest(reply: &mut Reader<'_>) -> Result<Portion, Error> {
    let (count, end, _priority) = (u64::from(reply.u32()?), reply.u8()?, reply.u32()?);
    match end {
        codes::REVIVE_END | codes::REVIVE_MORE => {
            Ok(Portion { count, more: end == codes::REVIVE_MORE })
        }
        codes::REVIVE_UNKNOWN_PRIORITY => Err(target::unknown_priority()),
        _ => Err(malformed("unknown result of a revive")),
    }
}
