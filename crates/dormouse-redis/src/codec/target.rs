//! What verbs on single jobs share: how a job is named and what became of it.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, State};
use dormouse_core::op::{Changed, Target};
use dormouse_core::refusal::no_job;

use super::put::state;
use crate::wire::{Reader, Writer, strange};

/// The target as an argument.
pub(crate) fn arg(target: &Target) -> Bytes {
    let mut to = Writer::default();
    match target {
        Target::Id(id) => to.u8(b'i').id(*id).take(),
        Target::Key { key, .. } => to.u8(b'k').bytes(key).take(),
    }
}

/// The number of a state, as scripts know it.
pub(crate) fn state_number(state: State) -> u8 {
    match state {
        State::Delayed => 0,
        State::Ready => 1,
        State::Leased => 2,
        State::Dead => 3,
    }
}

/// The state of a job that is there.
pub(crate) fn known_state(number: u8) -> Result<State, Error> {
    state(number)?.ok_or_else(|| strange("a job has no state"))
}

/// What became of the job of a cancel, reschedule or revive; `refuse` says why it cannot be done.
pub(crate) fn changed(
    answer: &mut Reader<'_>,
    target: &Target,
    refuse: impl FnOnce(JobId, State) -> Error,
) -> Result<Result<Changed, Error>, Error> {
    let (outcome, id) = (answer.u8()?, answer.id()?);
    let (was, due_at) = (answer.u8()?, answer.u48()?);
    Ok(match outcome {
        0 => Ok(Changed { id, was: known_state(was)?, due_at }),
        2 => Err(no_job(target)),
        4 => Err(refuse(id, known_state(was)?)),
        5 => return Err(unknown_priority()),
        _ => return Err(strange("a job came to nothing known")),
    })
}

/// Priorities are not given up as long as a dead job may have them.
pub(crate) fn unknown_priority() -> Error {
    strange("a dead job has a priority that its partition does not know")
}
