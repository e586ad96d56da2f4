//! Encodes the arguments of the script verb `kill` and decodes its reply.

use dormouse_core::op::{EndReply, Kill, KillTarget};
use dormouse_core::refusal::{cannot_kill, lease_lost, no_job};

use super::{ItemResult, target};
use crate::wire::codes::{self, GIVEN_ERROR, GIVEN_PRIORITY};
use crate::wire::{Op, Reader, Writer, malformed};

/// The fields of `kills` have been checked and their errors cut to the limit.
pub(crate) fn op(kills: &[Kill]) -> Op {
    let mut args = Vec::new();
    for kill in kills {
        let mut to = Writer::default();
        args.push(match &kill.target {
            KillTarget::Token(token) => to.u8(b't').id(token.id).u64(token.fence).take(),
            KillTarget::Resting(target) => target::arg(target),
        });
        let mut given = 0;
        given |= if kill.priority.is_some() { GIVEN_PRIORITY } else { 0 };
        given |= if kill.error.is_some() { GIVEN_ERROR } else { 0 };
        args.push(to.u8(given).u32(kill.priority.unwrap_or(0)).take());
        args.push(kill.error.clone().unwrap_or_default());
    }
    let priorities = kills.iter().filter_map(|kill| kill.priority).collect();
    Op { priorities, ..Op::new("kill", args) }
}

pub(crate) fn read(reply: &mut Reader<'_>, target: &KillTarget) -> ItemResult<EndReply> {
    let (code, id, state) = (reply.u8()?, reply.id()?, reply.u8()?);
    Ok(match (code, target) {
        (codes::DONE, _) => Ok(EndReply::Done),
        (codes::GONE, KillTarget::Token(_)) => Ok(EndReply::Gone),
        (codes::GONE, KillTarget::Resting(target)) => Err(no_job(target)),
        (codes::LOST, KillTarget::Token(token)) => Err(lease_lost(*token)),
        (codes::CONFLICT, KillTarget::Resting(_)) => {
            Err(cannot_kill(id, target::known_state(state)?))
        }
        _ => return Err(malformed("unknown result of a kill")),
    })
}
