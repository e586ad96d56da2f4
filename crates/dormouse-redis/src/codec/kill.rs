//! kill, in words of the script.

use dormouse_core::error::Error;
use dormouse_core::op::{Ended, Kill, KillTarget};
use dormouse_core::refusal::{cannot_kill, lease_lost, no_job};

use super::nack::{GIVEN_ERROR, GIVEN_PRIORITY};
use super::target;
use crate::wire::{Op, Reader, Writer, strange};

/// The items are checked, their errors cut.
pub(crate) fn op<'a>(kills: impl Iterator<Item = &'a Kill>) -> Op {
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
    Op::new("kill", args)
}

pub(crate) fn read(
    answer: &mut Reader<'_>,
    target: &KillTarget,
) -> Result<Result<Ended, Error>, Error> {
    let (outcome, id, state) = (answer.u8()?, answer.id()?, answer.u8()?);
    Ok(match (outcome, target) {
        (0, _) => Ok(Ended::Done),
        (2, KillTarget::Token(_)) => Ok(Ended::Gone),
        (2, KillTarget::Resting(target)) => Err(no_job(target)),
        (3, KillTarget::Token(token)) => Err(lease_lost(*token)),
        (4, KillTarget::Resting(_)) => Err(cannot_kill(id, target::known_state(state)?)),
        _ => return Err(strange("a kill came to nothing known")),
    })
}
