//! The verbs that partitions merge into one operation for many callers, or whose arguments depend
//! on the topic's settings, one per file: encodes the arguments, decodes the reply. All other verbs
//! are files of `dispatch/fanout/`. The header of the Lua file of the same name has the layouts.

pub(crate) mod ack;
pub(crate) mod chain;
pub(crate) mod extend;
pub(crate) mod nack;
pub(crate) mod put;
pub(crate) mod reserve;
pub(crate) mod reserve_id;
#[cfg(test)]
mod tests;

use dormouse_core::error::Error;
use dormouse_core::job::State;
use dormouse_core::op::HeldBy;
use dormouse_core::refusal::{held_by_group, held_by_topic};
use dormouse_core::topic::TopicName;

use crate::wire::{codes, malformed};

/// The decoded result of one item of a request; the outer error is a malformed reply.
pub(crate) type ItemResult<T> = Result<Result<T, Error>, Error>;

/// The state with this code, if any.
fn state(code: u8) -> Result<Option<State>, Error> {
    Ok(Some(match code {
        codes::DELAYED => State::Delayed,
        codes::READY => State::Ready,
        codes::LEASED => State::Leased,
        codes::DEAD => State::Dead,
        codes::ACKED => State::Done,
        codes::NO_STATE => return Ok(None),
        _ => return Err(malformed("unknown state of a job")),
    }))
}

/// The state of a job that exists.
pub(crate) fn known_state(code: u8) -> Result<State, Error> {
    state(code)?.ok_or_else(|| malformed("a job without a state"))
}

/// A limit that holds a job, as a script tells it.
struct Hold<'a> {
    limit: Option<HeldBy>,
    group: &'a [u8],
    leased: u64,
    /// In how many ms it is open again; 0 = when a lease ends.
    wait_ms: u64,
}

/// The refusal of a job that a limit holds.
fn held_back(topic: &TopicName, hold: &Hold<'_>) -> Result<Error, Error> {
    let &Hold { limit, group, leased, wait_ms } = hold;
    let wait_ms = Some(wait_ms).filter(|ms| *ms > 0);
    match limit {
        None => Err(malformed("a job is held by no limit")),
        Some(limit @ (HeldBy::LeasedMax | HeldBy::Rate)) => {
            Ok(held_by_topic(topic, limit, leased, wait_ms))
        }
        Some(limit) => Ok(held_by_group(group, limit, leased, wait_ms)),
    }
}

/// Cannot happen: a priority is not dropped while a dead job may have it.
pub(crate) fn unknown_priority() -> Error {
    malformed("a dead job has a priority that its partition does not know")
}
