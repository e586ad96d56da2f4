//! put, in words of the script.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, State};
use dormouse_core::limits::PRIORITY_DEFAULT;
use dormouse_core::op::{OnConflict, Put, PutOutcome, PutReply};
use dormouse_core::refusal::{bytes_full, jobs_full, key_held, key_taken};
use dormouse_core::topic::{Settings, TopicName};

use crate::clock::ANY_TIME;
use crate::errors::no_memory;
use crate::wire::{Op, Reader, Writer, record, strange};

/// The limits of a partition: its share of the topic's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) jobs_max: Option<u64>,
    pub(crate) bytes_max: Option<u64>,
}

/// More than any topic has, and still exact in a script.
const NO_LIMIT: u64 = 1 << 52;

pub(crate) fn op<'a>(
    puts: impl Iterator<Item = &'a Put> + Clone,
    settings: &Settings,
    limits: Limits,
) -> Op {
    let is_limited = limits.jobs_max.is_some() || limits.bytes_max.is_some();
    if !is_limited && puts.clone().all(|put| put.key.is_none()) {
        return plain_op(puts, settings);
    }
    let mut args = Vec::new();
    let mut to = Writer::default();
    if is_limited {
        let share = |max: Option<u64>| max.unwrap_or(NO_LIMIT).min(NO_LIMIT);
        to.u64(share(limits.jobs_max)).u64(share(limits.bytes_max));
    }
    args.push(to.take());
    for put in puts {
        write_meta(&mut to, put);
        args.push(to.u8(mode(put.on_conflict)).take());
        args.push(put.key.clone().unwrap_or_default());
        args.push(record::encode(&put.clone().content(Some(settings), ANY_TIME), priority(put)));
    }
    Op::new("put", args)
}

/// Jobs without keys on a topic without limits: nothing is looked up for them.
fn plain_op<'a>(puts: impl Iterator<Item = &'a Put>, settings: &Settings) -> Op {
    let mut args = vec![Bytes::new(), Bytes::new()];
    let mut bytes = 0;
    let (mut runs, mut meta) = (Writer::default(), Writer::default());
    let (mut run, mut last) = (0, Bytes::new());
    for put in puts {
        write_meta(&mut meta, put);
        let its = meta.take();
        if run > 0 && its != last {
            runs.u16(run).bytes(&last);
            run = 0;
        }
        (run, last) = (run + 1, its);
        bytes += put.bytes();
        args.push(record::encode(&put.clone().content(Some(settings), ANY_TIME), priority(put)));
    }
    args[0] = Bytes::from(bytes.to_string());
    args[1] = runs.u16(run).bytes(&last).take();
    Op::new("put_plain", args)
}

/// When it is due, and its priority.
fn write_meta(to: &mut Writer, put: &Put) {
    let ms = |ms: i64| u64::try_from(ms).unwrap_or(0);
    let (clock, value_ms) = match (put.delay_ms, put.at_ms) {
        (_, Some(at_ms)) => (1, ms(at_ms)),
        (delay_ms, None) => (0, delay_ms.map_or(0, ms)),
    };
    to.u8(clock).u48(value_ms).u32(priority(put));
}

fn mode(on_conflict: OnConflict) -> u8 {
    match on_conflict {
        OnConflict::Keep => 0,
        OnConflict::Reject => 1,
        OnConflict::Replace => 2,
        OnConflict::Earliest => 3,
        OnConflict::Latest => 4,
    }
}

/// What a put came to. `bytes` are the job's own.
pub(crate) fn read(
    answer: &mut Reader<'_>,
    topic: &TopicName,
    bytes: u64,
    settings: &Settings,
) -> Result<Result<PutReply, Error>, Error> {
    let (mut answer, index) = answer.of_run(16)?;
    let (outcome, seen) = (answer.u8()?, answer.u8()?);
    let (first, due_at) = (answer.id()?, answer.u48()?);
    let id = JobId(first.0.wrapping_add(u64::from(index)));
    let reply = |outcome| -> Result<PutReply, Error> {
        Ok(PutReply { id, outcome, state: state(seen)?, due_at })
    };
    Ok(match outcome {
        0 => Ok(reply(PutOutcome::Created)?),
        1 | 7 => Ok(reply(PutOutcome::Duplicate)?),
        2 => Ok(PutReply { id, outcome: PutOutcome::Replaced, state: state(seen)?, due_at }),
        3 => Err(key_taken(id, state(seen)?.unwrap_or(State::Ready))),
        4 => Err(jobs_full(topic, due_at, settings.jobs_max.unwrap_or(0))),
        5 => {
            let max = settings.bytes_max.unwrap_or(0);
            Err(bytes_full(topic, due_at, due_at.saturating_add(bytes), max))
        }
        6 => Err(no_memory()),
        8 => Err(key_held(id)),
        _ => return Err(strange("a put came to nothing known")),
    })
}

/// The state of this number; 255 is none.
pub(crate) fn state(number: u8) -> Result<Option<State>, Error> {
    Ok(Some(match number {
        0 => State::Delayed,
        1 => State::Ready,
        2 => State::Leased,
        3 => State::Dead,
        255 => return Ok(None),
        _ => return Err(strange("a job has no such state")),
    }))
}

/// What counts for the limit of a flight: the bytes that it carries.
pub(crate) fn weight(put: &Put) -> usize {
    put.body.len() + 512
}

/// The priority it asks for.
pub(crate) fn priority(put: &Put) -> u32 {
    put.priority.unwrap_or(PRIORITY_DEFAULT)
}

/// Shards are the high bits of an id.
pub(crate) const SHARD_SHIFT: u32 = 40;

/// The shard an id belongs to.
pub(crate) fn shard_of(id: JobId) -> u32 {
    // 24 bits are left.
    (id.0 >> SHARD_SHIFT) as u32
}
