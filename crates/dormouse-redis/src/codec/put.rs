//! Encodes the arguments of the script verb `put` and decodes its reply.

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::{Content, JobId, State, TickOrigin};
use dormouse_core::limits::PRIORITY_DEFAULT;
use dormouse_core::op::{OnConflict, Put, PutOutcome, PutReply};
use dormouse_core::refusal::{bytes_full, jobs_full, key_held, key_taken};
use dormouse_core::topic::{Settings, TopicName};

use super::{ItemResult, state};
use crate::clock::ANY_TIME;
use crate::errors::no_memory;
use crate::wire::{Op, Reader, Writer, codes, malformed, number, record};

/// A partition's share of the topic's limits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) jobs_max: Option<u64>,
    pub(crate) bytes_max: Option<u64>,
}

/// More than any topic holds, and exact as a Lua number.
const NO_LIMIT: u64 = 1 << 52;

pub(crate) fn op<'a>(
    puts: impl Iterator<Item = &'a Put> + Clone,
    settings: &Settings,
    limits: Limits,
) -> Op {
    let is_limited = limits.jobs_max.is_some() || limits.bytes_max.is_some();
    let is_plain = |put: &Put| put.key.is_none() && span_ms(put, settings) == 0;
    if !is_limited && puts.clone().all(is_plain) {
        return fast_op(puts, settings);
    }
    Op::new("put", args(puts, settings, limits))
}

fn args<'a>(
    puts: impl Iterator<Item = &'a Put>,
    settings: &Settings,
    limits: Limits,
) -> Vec<Bytes> {
    let mut args = vec![limits_arg(limits)];
    let mut to = Writer::default();
    for put in puts {
        write_meta(&mut to, put, settings);
        args.push(to.u8(mode(put.on_conflict)).take());
        args.push(put.key.clone().unwrap_or_default());
        args.push(record::encode(&put.clone().content(Some(settings), ANY_TIME), priority(put)));
    }
    args
}

/// A name by which the script recognises a put that is repeated, whatever has become of its job.
#[derive(Clone, Debug)]
pub(crate) struct Marker {
    pub(crate) name: Bytes,
    /// How long after the put a repeat is recognised.
    pub(crate) ttl_ms: u64,
}

/// A put that a server makes, besides those of callers: a dead letter, a job of a chain or of a
/// schedule.
#[derive(Clone, Debug)]
pub(crate) struct OwnPut {
    pub(crate) put: Put,
    pub(crate) marker: Option<Marker>,
    /// The tick that the job is of.
    pub(crate) tick: Option<Arc<TickOrigin>>,
}

impl From<Put> for OwnPut {
    fn from(put: Put) -> OwnPut {
        OwnPut { put, marker: None, tick: None }
    }
}

pub(crate) fn own_op(puts: &[OwnPut], settings: &Settings, limits: Limits) -> Op {
    Op::new("put", own_args(puts, settings, limits))
}

/// The arguments of the verb for such puts, which a chain takes, too.
pub(crate) fn own_args(puts: &[OwnPut], settings: &Settings, limits: Limits) -> Vec<Bytes> {
    let mut args = vec![limits_arg(limits)];
    let mut to = Writer::default();
    for OwnPut { put, marker, tick } in puts {
        write_meta(&mut to, put, settings);
        to.u8(mode(put.on_conflict));
        if let Some(Marker { name, ttl_ms }) = marker {
            to.u48(*ttl_ms).bytes(name);
        }
        let content = put.clone().content(Some(settings), ANY_TIME);
        let record = record::encode(&Content { tick: tick.clone(), ..content }, priority(put));
        args.extend([to.take(), put.key.clone().unwrap_or_default(), record]);
    }
    args
}

/// Equal puts have equal fingerprints, on all servers.
pub(crate) fn fingerprint(put: &Put) -> u64 {
    let mut to = Writer::default();
    to.short_bytes(put.topic.as_str().as_bytes()).u8(mode(put.on_conflict));
    for ms in [put.delay_ms, put.at_ms, put.expires_after_ms, put.ttr_ms] {
        to.u8(u8::from(ms.is_some())).u64(ms.unwrap_or(0).cast_unsigned());
    }
    to.u8(u8::from(put.attempts_max.is_some()));
    let record = record::encode(&put.clone().content(None, ANY_TIME), priority(put));
    let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    to.take().iter().chain(record.iter()).fold(0xcbf2_9ce4_8422_2325, fnv)
}

/// How long after it is due the job dies unless it is taken; 0 = never.
pub(crate) fn span_ms(put: &Put, settings: &Settings) -> u64 {
    let own = put.expires_after_ms.map(|ms| u64::try_from(ms).unwrap_or(0));
    own.or(settings.expires_after_ms).unwrap_or(0)
}

fn limits_arg(limits: Limits) -> Bytes {
    if limits.jobs_max.is_none() && limits.bytes_max.is_none() {
        return Bytes::new();
    }
    let share = |max: Option<u64>| max.unwrap_or(NO_LIMIT).min(NO_LIMIT);
    Writer::default().u64(share(limits.jobs_max)).u64(share(limits.bytes_max)).take()
}

/// A job that a schedule puts; it has no key.
#[derive(Clone, Debug)]
pub(crate) struct ScheduledJob {
    pub(crate) content: Content,
    pub(crate) priority: u32,
    /// When it is due; `None` = now.
    pub(crate) due_at: Option<u64>,
}

/// The arguments of a put of such jobs.
pub(crate) fn scheduled_args<'a>(
    jobs: impl Iterator<Item = &'a ScheduledJob>,
    limits: Limits,
) -> Vec<Bytes> {
    let mut args = vec![limits_arg(limits)];
    for ScheduledJob { content, priority, due_at } in jobs {
        let clock = if due_at.is_some() { codes::CLOCK_AT } else { codes::CLOCK_DELAY };
        let mut to = Writer::default();
        to.u8(clock).u48(due_at.unwrap_or(0)).u32(*priority).u8(codes::KEEP);
        args.extend([to.take(), Bytes::new(), record::encode(content, *priority)]);
    }
    args
}

/// Jobs without keys for a topic without limits: the script looks nothing up for them.
fn fast_op<'a>(puts: impl Iterator<Item = &'a Put>, settings: &Settings) -> Op {
    let mut args = vec![Bytes::new(), Bytes::new()];
    let mut bytes = 0;
    let (mut runs, mut meta) = (Writer::default(), Writer::default());
    let (mut run, mut last) = (0, Bytes::new());
    for put in puts {
        write_meta(&mut meta, put, settings);
        let current = meta.take();
        if run > 0 && current != last {
            runs.u16(run).bytes(&last);
            run = 0;
        }
        (run, last) = (run + 1, current);
        bytes += put.bytes();
        args.push(record::encode(&put.clone().content(Some(settings), ANY_TIME), priority(put)));
    }
    args[0] = number(bytes);
    args[1] = runs.u16(run).bytes(&last).take();
    Op::new("put_plain", args)
}

/// Writes the due time and the priority.
fn write_meta(to: &mut Writer, put: &Put, settings: &Settings) {
    let ms = |ms: i64| u64::try_from(ms).unwrap_or(0);
    let (clock, value_ms) = match (put.delay_ms, put.at_ms) {
        (_, Some(at_ms)) => (codes::CLOCK_AT, ms(at_ms)),
        (Some(delay_ms), None) => (codes::CLOCK_DELAY, ms(delay_ms)),
        (None, None) => (codes::CLOCK_DELAY, settings.delay_ms.unwrap_or(0)),
    };
    to.u8(clock).u48(value_ms).u32(priority(put));
}

fn mode(on_conflict: OnConflict) -> u8 {
    match on_conflict {
        OnConflict::Keep => codes::KEEP,
        OnConflict::Reject => codes::REJECT,
        OnConflict::Replace => codes::REPLACE,
        OnConflict::Earliest => codes::EARLIEST,
        OnConflict::Latest => codes::LATEST,
    }
}

/// `bytes` is the size of the job that was put.
pub(crate) fn read(
    reply: &mut Reader<'_>,
    topic: &TopicName,
    bytes: u64,
    settings: &Settings,
) -> ItemResult<PutReply> {
    let (mut reply, index) = reply.run_item(16)?;
    let (code, seen) = (reply.u8()?, reply.u8()?);
    let (first, due_at) = (reply.id()?, reply.u48()?);
    let id = JobId(first.0.wrapping_add(u64::from(index)));
    let done = |outcome| -> Result<PutReply, Error> {
        Ok(PutReply { id, outcome, state: state(seen)?, due_at })
    };
    Ok(match code {
        codes::CREATED => Ok(done(PutOutcome::Created)?),
        codes::DUPLICATE | codes::HELD_DUPLICATE => Ok(done(PutOutcome::Duplicate)?),
        codes::REPLACED => Ok(done(PutOutcome::Replaced)?),
        codes::REFUSED => Err(key_taken(id, state(seen)?.unwrap_or(State::Ready))),
        codes::HELD_REFUSED => Err(key_held(id)),
        code => Err(no_room(code, due_at, topic, bytes, settings)?),
    })
}

/// The refusal of a job for which there is no room; `amount`: what the topic has of the limited
/// thing.
pub(crate) fn no_room(
    code: u8,
    amount: u64,
    topic: &TopicName,
    bytes: u64,
    settings: &Settings,
) -> Result<Error, Error> {
    Ok(match code {
        codes::JOBS_FULL => jobs_full(topic, amount, settings.jobs_max.unwrap_or(0)),
        codes::BYTES_FULL => {
            let max = settings.bytes_max.unwrap_or(0);
            bytes_full(topic, amount, amount.saturating_add(bytes), max)
        }
        codes::NO_MEMORY => no_memory(),
        _ => return Err(malformed("unknown result of a put")),
    })
}

/// What counts for the limit of a script batch: about the bytes sent.
pub(crate) fn weight(put: &Put) -> usize {
    put.body.len() + 512
}

pub(crate) fn priority(put: &Put) -> u32 {
    put.priority.unwrap_or(PRIORITY_DEFAULT)
}

/// The shard is the part of an id above the number.
pub(crate) const SHARD_SHIFT: u32 = codes::JOB_NUMBER_MAX.trailing_ones();

pub(crate) fn shard_of(id: JobId) -> u32 {
    (id.0 >> SHARD_SHIFT) as u32
}
