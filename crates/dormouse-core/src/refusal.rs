//! The answers that refuse, in words that are the same on every backend. Each says what was wrong
//! and the way out.

use crate::command::Reply;
use crate::error::{Code, Error};
use crate::holder::Holdings;
use crate::job::{JobId, State, Token};
use crate::limits::{
    LEASED_BYTES_MAX, LEASED_JOBS_MAX, LOCKS_MAX, PUSHES_MAX, PUT_KEYED_BYTES_MAX, REPLY_BYTES_MAX,
    WAITERS_MAX,
};
use crate::op::{HeldBy, Purge, SessionId, Target};
use crate::schedule::ScheduleName;
use crate::topic::TopicName;

/// About a job that is not there.
pub fn no_job(target: &Target) -> Error {
    Error::not_found(match target {
        Target::Id(id) => format!("job {id} is not there; it was acked, cancelled or never put"),
        Target::Key { topic, key } => {
            let key = String::from_utf8_lossy(key);
            format!("no job of topic {topic} has key {key:?}; it was acked, cancelled or never put")
        }
    })
}

/// About an id that no job was given yet.
pub fn never_put(id: JobId) -> Error {
    Error::not_found(format!("job {id} was never put: no put has answered this id"))
}

/// About an id that was given, and whose job is not there.
pub fn job_gone(id: JobId) -> Error {
    Error::not_found(format!("job {id} is gone: it was acked, cancelled or removed"))
}

/// About a job that is done, to a request that would change it.
pub fn job_done(id: JobId) -> Error {
    Error::not_found(format!("job {id} is done: it was acked, and only its history is kept"))
}

/// To a purge of leased jobs.
pub fn purge_leased() -> Error {
    Error::invalid(
        "leased jobs are not purged; give delayed, ready, dead or done, or release them first",
    )
}

/// To a purge that would remove more jobs than it may.
pub fn purge_too_many(purge: &Purge, count: u64, at_most: u64) -> Error {
    let topic = &purge.topic;
    let which = purge.state.map_or_else(
        || "jobs that are not leased".to_owned(),
        |state| format!("{} jobs", state.as_str()),
    );
    let text = format!(
        "topic {topic} has {count} {which}, at_most is {at_most}, and nothing was removed; look \
         again, then give at_most {count} or leave it out"
    );
    Error::new(Code::Conflict, text)
}

/// About a topic that is not there.
pub fn no_topic(name: &TopicName) -> Error {
    Error::not_found(format!("topic {name} is not there; it has no job, setting or consumer"))
}

/// About a schedule that is not there.
pub fn no_schedule(topic: &TopicName, name: &ScheduleName) -> Error {
    Error::not_found(format!(
        "topic {topic} has no schedule {name}; it was removed, has ended or was never put"
    ))
}

/// To a put of a schedule whose name is taken, or whose version is another.
pub fn schedule_conflict(name: &ScheduleName, given: u64, version: Option<u64>) -> Error {
    let text = match version {
        None => format!(
            "schedule {name} is not there, so it has not version {given}; leave if_version out"
        ),
        Some(version) if given == 0 => format!(
            "schedule {name} is there with version {version}; give another name or on_conflict \
             replace"
        ),
        Some(version) => format!(
            "schedule {name} has version {version}, not {given}; look at it and decide again"
        ),
    };
    Error::new(Code::Conflict, text)
}

/// To a change of a push that has another version, or none.
pub fn push_conflict(topic: &TopicName, expected: u64, version: u64) -> Error {
    let text = match (expected, version) {
        (_, 0) => format!("topic {topic} has no push, so it has not version {expected}"),
        (0, version) => format!("topic {topic} has a push with version {version}"),
        _ => format!("the push of topic {topic} has version {version}, not {expected}"),
    };
    Error::new(Code::Conflict, format!("{text}; look at it and decide again"))
}

/// To a push beyond the number of topics that may have one.
pub fn too_many_pushes() -> Error {
    let text = format!("{PUSHES_MAX} topics are pushed, which is the limit; remove one");
    Error::new(Code::Full, text)
}

/// To a schedule that would never tick.
pub fn schedule_never_ticks(name: &ScheduleName) -> Error {
    Error::invalid(format!(
        "schedule {name} would never tick: there is none between start_at and end_at; change them \
         or the rule"
    ))
}

/// To a token that is no longer good.
pub fn lease_lost(token: Token) -> Error {
    Error::new(
        Code::LeaseLost,
        format!(
            "token {token} is no longer good: its lease ended and the job went on without it; \
             drop the work and reserve again"
        ),
    )
}

/// To an extend of a job that is gone.
pub fn nothing_to_extend(id: JobId) -> Error {
    Error::not_found(format!("job {id} is not there; it was acked or cancelled, drop the work"))
}

/// To a put whose key a job has.
pub fn key_taken(id: JobId, state: State) -> Error {
    Error::conflict(
        id,
        state,
        format!("the key is taken by job {id}, which is {state}; give another key or on_conflict"),
    )
}

/// To a put whose key is held after an ack.
pub fn key_held(id: JobId) -> Error {
    Error::new(
        Code::Conflict,
        format!(
            "the key is kept taken after the ack of job {id} (key_ttl); wait, give another key, \
             or on_conflict replace"
        ),
    )
}

/// To a put whose batch has found enough large jobs under its keys.
pub fn keyed_jobs_too_large() -> Error {
    Error::new(
        Code::Busy,
        format!(
            "the jobs that have the keys of this batch have more than {PUT_KEYED_BYTES_MAX} bytes, \
             and this put comes after those; put it again, with fewer at once"
        ),
    )
}

/// To a put into a topic that has all the jobs it may have.
pub fn jobs_full(topic: &TopicName, jobs: u64, max: u64) -> Error {
    Error::new(
        Code::Full,
        format!(
            "topic {topic} has {jobs} jobs, its jobs_max is {max}; try again when some are done, \
             or raise it"
        ),
    )
}

/// To a put into a topic that would have more bytes than it may have.
pub fn bytes_full(topic: &TopicName, bytes: u64, after: u64, max: u64) -> Error {
    Error::new(
        Code::Full,
        format!(
            "topic {topic} has {bytes} bytes and would have {after}, its bytes_max is {max}; try \
             again when some jobs are done, or raise it"
        ),
    )
}

/// To a cancel that must not revoke a lease.
pub fn cancel_leased(id: JobId) -> Error {
    let text = format!("job {id} is leased; cancel it without unless_leased, or wait");
    Error::conflict(id, State::Leased, text)
}

/// To a reserve of one job that is leased.
pub fn reserve_leased(id: JobId) -> Error {
    let text = format!("job {id} is leased; wait until its lease ends, or cancel it");
    Error::conflict(id, State::Leased, text)
}

/// To a reserve when all topics together have as much leased as there may be.
pub fn leases_full(jobs: usize, bytes: u64) -> Error {
    Error::new(
        Code::Busy,
        format!(
            "{jobs} jobs of {bytes} bytes are leased, the limit is {LEASED_JOBS_MAX} jobs or \
             {LEASED_BYTES_MAX} bytes; ack some and try again"
        ),
    )
}

/// To a reserve in a topic that has its share of all leases.
pub fn leases_of_topic_used(topic: &TopicName, jobs: u64, bytes: u64) -> Error {
    Error::new(
        Code::Busy,
        format!(
            "topic {topic} has {jobs} jobs of {bytes} bytes leased: its share, a quarter of \
             {LEASED_JOBS_MAX} jobs or {LEASED_BYTES_MAX} bytes, is used up, and what is left is \
             for other topics; ack some and try again"
        ),
    )
}

/// To a request for a given job while its topic has no slot or its rate is used.
pub fn held_by_topic(topic: &TopicName, limit: HeldBy, leased: u64, wait_ms: Option<u64>) -> Error {
    held(&format!("topic {topic}"), limit, leased, wait_ms)
}

/// To a request for a given job while its group has no slot or its rate is used.
pub fn held_by_group(group: &[u8], limit: HeldBy, leased: u64, wait_ms: Option<u64>) -> Error {
    held(&format!("group {}", group.escape_ascii()), limit, leased, wait_ms)
}

fn held(of: &str, limit: HeldBy, leased: u64, wait_ms: Option<u64>) -> Error {
    let limit = limit.as_str();
    let text = match wait_ms {
        Some(ms) => format!("{of} has used its {limit}; try again in {ms} ms, or raise it"),
        None => format!(
            "{of} has {leased} jobs leased, as many as its {limit} allows; try again when one of \
             them is acked, or raise it"
        ),
    };
    Error::new(Code::Busy, text)
}

/// How the caller's own token is called here; the server, which knows its name, tells that.
pub const THIS_TOKEN: &str = "this token";

/// To a reserve by a token that has its share of all leases.
pub fn leases_of_token_used(held: Holdings) -> Error {
    let Holdings { jobs, bytes, .. } = held;
    Error::new(
        Code::Busy,
        format!(
            "{THIS_TOKEN} has {jobs} jobs of {bytes} bytes leased: its share, a quarter of \
             {LEASED_JOBS_MAX} jobs or {LEASED_BYTES_MAX} bytes, is used up, and what is left is \
             for others; ack some and try again"
        ),
    )
}

/// To a lock by a token that has its share of all locks.
pub fn locks_of_token_used(locks: u64) -> Error {
    Error::new(
        Code::Busy,
        format!(
            "{THIS_TOKEN} holds {locks} locks: its share, a quarter of {LOCKS_MAX}, is used up, \
             and what is left is for others; release some and try again"
        ),
    )
}

/// To a kill of a job in this state.
pub fn cannot_kill(id: JobId, state: State) -> Error {
    let fix = match state {
        State::Leased => "kill it with its token, or cancel it",
        _ => "there is nothing to kill",
    };
    Error::conflict(id, state, format!("job {id} is {state}; {fix}"))
}

/// To a reschedule of a job in this state.
pub fn cannot_move(id: JobId, state: State) -> Error {
    let fix = match state {
        State::Leased => "extend, release or nack it with its token",
        _ => "revive it",
    };
    Error::conflict(id, state, format!("job {id} is {state} and has no due time to move; {fix}"))
}

/// To a revive of a job that is not dead.
pub fn not_dead(id: JobId, state: State) -> Error {
    let text = format!("job {id} is {state}, not dead; there is nothing to revive");
    Error::conflict(id, state, text)
}

/// To a get of a job for which the reply has no room any more.
pub fn does_not_fit(id: JobId) -> Error {
    Error::new(
        Code::TooLarge,
        format!(
            "job {id} does not fit into this reply of at most {REPLY_BYTES_MAX} bytes; ask for it \
             in another batch"
        ),
    )
}

/// To a cursor that no list of this state gave.
pub fn foreign_cursor(text: &str, state: State) -> Error {
    let shown: String = text.chars().take(64).collect();
    Error::invalid(format!(
        "cursor {shown:?} is none of a list of {state} jobs; send it as the last page gave it"
    ))
}

/// To a reserve in a session that is not open.
pub fn no_session(session: SessionId) -> Error {
    Error::not_found(format!("session {} is not open; open one and name that", session.0))
}

/// To the second end of a session.
pub fn session_closed(session: SessionId) -> Error {
    Error::not_found(format!("session {} is not open; it was closed before", session.0))
}

/// About a lock that is free.
pub fn lock_free(name: &[u8]) -> Error {
    Error::not_found(format!(
        "lock {:?} is free; it ran out or was given back, take it again",
        String::from_utf8_lossy(name)
    ))
}

/// To who breaks a lock that nobody holds.
pub fn no_lock_to_break(name: &[u8]) -> Error {
    let name = String::from_utf8_lossy(name);
    Error::not_found(format!("lock {name:?} is free; there is nothing to break"))
}

/// To who breaks a grant of a lock that has ended, while another has it.
pub fn lock_passed_on(name: &[u8], fence: u64) -> Error {
    let name = String::from_utf8_lossy(name);
    Error::new(
        Code::Conflict,
        format!(
            "lock {name:?} is held with fence {fence} by now, not with the one that was named; \
             look again, and name that one or none"
        ),
    )
}

/// About a lock that another owner holds.
pub fn lock_held(name: &[u8], owner: &[u8]) -> Error {
    let (name, owner) = (String::from_utf8_lossy(name), String::from_utf8_lossy(owner));
    if owner.is_empty() {
        let text = format!("lock {name:?} is passing to one who waits for it; try again, or wait");
        return Error::new(Code::Conflict, text);
    }
    Error::new(
        Code::Conflict,
        format!(
            "lock {name:?} is held by {owner:?}; only that owner may renew or release it, others \
             can wait for it"
        ),
    )
}

/// To one lock too many.
pub fn too_many_locks() -> Error {
    Error::new(
        Code::Busy,
        format!("{LOCKS_MAX} locks are held, the limit; try again when some are free"),
    )
}

/// To a request that wants to wait when too many do.
pub fn too_many_wait() -> Error {
    Error::new(
        Code::Busy,
        format!("{WAITERS_MAX} requests wait already, the limit; ask without wait or later"),
    )
}

/// The job that a conflict is about, and its state, read from one of the texts above: protocols
/// whose errors are lines of text have nothing else.
pub fn job_in_the_way(text: &str) -> Option<(JobId, State)> {
    let behind = text.strip_prefix("the key is taken by ").unwrap_or(text).strip_prefix("job ")?;
    let (id, behind) = behind.split_at(behind.find(|sign: char| !sign.is_ascii_digit())?);
    let behind = behind.strip_prefix(", which").unwrap_or(behind).strip_prefix(" is ")?;
    let word = behind.split(|sign: char| !sign.is_ascii_alphabetic()).next()?;
    let states = [State::Delayed, State::Ready, State::Leased, State::Dead, State::Done];
    let state = states.into_iter().find(|state| state.as_str() == word)?;
    Some((id.parse().ok()?, state))
}

/// About a backend that answers with the reply of another operation.
pub fn unexpected(reply: &Reply) -> Error {
    let shown: String = format!("{reply:?}").chars().take(200).collect();
    Error::unavailable(format!("the backend answered with the reply of another request: {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_the_job_that_its_error_has() {
        let id = JobId(42);
        for error in [
            key_taken(id, State::Delayed),
            key_held(id),
            cancel_leased(id),
            reserve_leased(id),
            cannot_kill(id, State::Dead),
            cannot_kill(id, State::Leased),
            cannot_move(id, State::Leased),
            cannot_move(id, State::Dead),
            not_dead(id, State::Ready),
            lock_held(b"job 42 is dead", b"me"),
        ] {
            assert_eq!(job_in_the_way(&error.text), error.job, "{error}");
        }
        for text in ["", "job ", "job x is dead", "job 1 is gone", "job 1 was dead", "a job 1"] {
            assert_eq!(job_in_the_way(text), None, "{text}");
        }
    }
}
