//! Shared by verbs on single jobs: how a job is named, and the result of a change.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, State};
use dormouse_core::op::{ChangeReply, Target};
use dormouse_core::refusal::no_job;

use super::ItemResult;
use super::put::state;
use crate::wire::{Reader, Writer, codes, malformed};

pub(crate) fn arg(target: &Target) -> Bytes {
    let mut to = Writer::default();
    match target {
        Target::Id(id) => to.u8(b'i').id(*id).take(),
        Target::Key { key, .. } => to.u8(b'k').bytes(key).take(),
    }
}

pub(crate) fn state_code(state: State) -> u8 {
    match state {
        State::Delayed => codes::DELAYED,
        State::Ready => codes::READY,
        State::Leased => codes::LEASED,
        State::Dead => codes::DEAD,
    }
}

/// The state of a job that exists.
pub(crate) fn known_state(code: u8) -> Result<State, Error> {
    state(code)?.ok_or_else(|| malformed("a job without a state"))
}

/// Decodes an item of the reply to cancel, reschedule or revive; `refuse` makes the error for a
/// job in a state that does not allow it.
pub(crate) fn change_reply(
    reply: &mut Reader<'_>,
    target: &Target,
    refuse: impl FnOnce(JobId, State) -> Error,
) -> ItemResult<ChangeReply> {
    let (code, id) = (reply.u8()?, reply.id()?);
    let (was, due_at) = (reply.u8()?, reply.u48()?);
    Ok(match code {
        codes::DONE => Ok(ChangeReply { id, was: known_state(was)?, due_at }),
        codes::GONE => Err(no_job(target)),
        codes::CONFLICT => Err(refuse(id, known_state(was)?)),
        codes::UNKNOWN_PRIORITY => return Err(unknown_priority()),
        _ => return Err(malformed("unknown result of a change")),
    })
}

/// Cannot happen: a priority is not dropped while a dead job may have it.
pub(crate) fn unknown_priority() -> Error {
    malformed("a dead job has a priority that its partition does not know")
}
