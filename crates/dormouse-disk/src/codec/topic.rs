//! Settings and pauses of topics.
//!
//! ```text
//! settings  flags 1 byte, the numbers they announce, [backoff]; if 0x80: flags 1 byte (0x01
//!           delay_ms, 0x02 expires_after_ms, 0x04 keep_done_ms, 0x08 dead_topic, 0x10 limits,
//!           0x20 push) and what they announce
//! limits    flags 1 byte (0x01 leased_max, 0x02 rate, 0x04 group_leased_max, 0x08 group_rate) and
//!           what they announce; a rate is jobs, per_ms, burst
//! push      version, concurrency, 1 byte (1 = disabled), record
//! ```

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::rate::Rate;
use dormouse_core::topic::{Pause, Push, Settings, TopicName};

use super::backoff::{decode_backoff, encode_backoff};
use super::raw::{Reader, put_bytes, put_varint};

const TTR: u8 = 0x01;
const ATTEMPTS_MAX: u8 = 0x02;
const BACKOFF: u8 = 0x04;
const JOBS_MAX: u8 = 0x08;
const BYTES_MAX: u8 = 0x10;
const DEAD_TTL: u8 = 0x20;
const DEAD_MAX: u8 = 0x40;
const LIFE: u8 = 0x80;

const DELAY: u8 = 0x01;
const EXPIRES_AFTER: u8 = 0x02;
const KEEP_DONE: u8 = 0x04;
const DEAD_TOPIC: u8 = 0x08;
const LIMITS: u8 = 0x10;
const PUSH: u8 = 0x20;

const LEASED_MAX: u8 = 0x01;
const RATE: u8 = 0x02;
const GROUP_LEASED_MAX: u8 = 0x04;
const GROUP_RATE: u8 = 0x08;

const RESUMED: u8 = 0;
const PAUSED_OPEN: u8 = 1;
const PAUSED_UNTIL: u8 = 2;

fn set(condition: bool, flag: u8) -> u8 {
    if condition { flag } else { 0 }
}

/// Appends flags and the settings they announce.
pub fn encode_settings(settings: &Settings, out: &mut Vec<u8>) {
    let numbers = [
        (TTR, settings.ttr_ms),
        (ATTEMPTS_MAX, settings.attempts_max.map(u64::from)),
        (JOBS_MAX, settings.jobs_max),
        (BYTES_MAX, settings.bytes_max),
        (DEAD_TTL, settings.dead_ttl_ms),
        (DEAD_MAX, settings.dead_max),
    ];
    let given = numbers.iter().filter(|(_, number)| number.is_some());
    let flags = given.fold(0, |flags, (flag, _)| flags | flag);
    let life = life_flags(settings);
    out.push(flags | set(settings.backoff.is_some(), BACKOFF) | set(life != 0, LIFE));
    numbers.into_iter().filter_map(|(_, number)| number).for_each(|number| put_varint(number, out));
    if let Some(backoff) = &settings.backoff {
        encode_backoff(backoff, out);
    }
    if life != 0 {
        out.push(life);
        let numbers = [settings.delay_ms, settings.expires_after_ms, settings.keep_done_ms];
        numbers.into_iter().flatten().for_each(|number| put_varint(number, out));
        if let Some(topic) = &settings.dead_topic {
            put_bytes(topic.as_str().as_bytes(), out);
        }
        let limits = limit_flags(settings);
        if limits != 0 {
            out.push(limits);
            encode_limits(settings.leased_max, settings.rate, out);
            encode_limits(settings.group_leased_max, settings.group_rate, out);
        }
        settings.push.iter().for_each(|push| encode_push(push, out));
    }
}

/// Appends how the jobs of a topic are pushed.
pub(super) fn encode_push(push: &Push, out: &mut Vec<u8>) {
    put_varint(push.version, out);
    put_varint(push.concurrency, out);
    out.push(u8::from(push.is_disabled));
    put_bytes(&push.record, out);
}

/// Reads what [`encode_push`] wrote.
pub(super) fn decode_push(reader: &mut Reader<'_>) -> Option<Push> {
    let (version, concurrency) = (reader.varint()?, reader.varint()?);
    let is_disabled = match reader.byte()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let record = Bytes::copy_from_slice(reader.bytes()?);
    Some(Push { version, concurrency, is_disabled, record })
}

fn encode_limits(leased_max: Option<u64>, rate: Option<Rate>, out: &mut Vec<u8>) {
    leased_max.into_iter().for_each(|jobs| put_varint(jobs, out));
    if let Some(Rate { jobs, per_ms, burst }) = rate {
        [jobs, per_ms, burst].into_iter().for_each(|number| put_varint(number, out));
    }
}

/// Which of the settings are given that say how jobs begin, are taken and end.
fn life_flags(settings: &Settings) -> u8 {
    set(settings.delay_ms.is_some(), DELAY)
        | set(settings.expires_after_ms.is_some(), EXPIRES_AFTER)
        | set(settings.keep_done_ms.is_some(), KEEP_DONE)
        | set(settings.dead_topic.is_some(), DEAD_TOPIC)
        | set(limit_flags(settings) != 0, LIMITS)
        | set(settings.push.is_some(), PUSH)
}

fn limit_flags(settings: &Settings) -> u8 {
    set(settings.leased_max.is_some(), LEASED_MAX)
        | set(settings.rate.is_some(), RATE)
        | set(settings.group_leased_max.is_some(), GROUP_LEASED_MAX)
        | set(settings.group_rate.is_some(), GROUP_RATE)
}

/// Reads what [`encode_settings`] wrote.
pub fn decode_settings(reader: &mut Reader<'_>) -> Option<Settings> {
    let flags = reader.byte()?;
    let mut number = |flag: u8| number(reader, flags, flag);
    let mut settings = Settings { ttr_ms: number(TTR)?, ..Settings::default() };
    settings.attempts_max = number(ATTEMPTS_MAX)?.map(u32::try_from).transpose().ok()?;
    settings.jobs_max = number(JOBS_MAX)?;
    settings.bytes_max = number(BYTES_MAX)?;
    settings.dead_ttl_ms = number(DEAD_TTL)?;
    settings.dead_max = number(DEAD_MAX)?;
    if flags & BACKOFF != 0 {
        settings.backoff = Some(Arc::new(decode_backoff(reader)?));
    }
    if flags & LIFE != 0 {
        decode_life(&mut settings, reader)?;
    }
    Some(settings)
}

fn decode_life(settings: &mut Settings, reader: &mut Reader<'_>) -> Option<()> {
    let flags = reader.byte()?;
    if flags & !(DELAY | EXPIRES_AFTER | KEEP_DONE | DEAD_TOPIC | LIMITS | PUSH) != 0 {
        return None;
    }
    settings.delay_ms = number(reader, flags, DELAY)?;
    settings.expires_after_ms = number(reader, flags, EXPIRES_AFTER)?;
    settings.keep_done_ms = number(reader, flags, KEEP_DONE)?;
    if flags & DEAD_TOPIC != 0 {
        settings.dead_topic = Some(TopicName::new(reader.text()?).ok()?);
    }
    if flags & LIMITS != 0 {
        decode_limits(settings, reader)?;
    }
    if flags & PUSH != 0 {
        settings.push = Some(Arc::new(decode_push(reader)?));
    }
    Some(())
}

fn decode_limits(settings: &mut Settings, reader: &mut Reader<'_>) -> Option<()> {
    let flags = reader.byte()?;
    if flags & !(LEASED_MAX | RATE | GROUP_LEASED_MAX | GROUP_RATE) != 0 {
        return None;
    }
    settings.leased_max = number(reader, flags, LEASED_MAX)?;
    settings.rate = rate(reader, flags, RATE)?;
    settings.group_leased_max = number(reader, flags, GROUP_LEASED_MAX)?;
    settings.group_rate = rate(reader, flags, GROUP_RATE)?;
    Some(())
}

/// The number that a flag announces; the inner `None` = it announces none.
fn number(reader: &mut Reader<'_>, flags: u8, flag: u8) -> Option<Option<u64>> {
    match flags & flag {
        0 => Some(None),
        _ => reader.varint().map(Some),
    }
}

/// The rate that a flag announces; the inner `None` = it announces none.
fn rate(reader: &mut Reader<'_>, flags: u8, flag: u8) -> Option<Option<Rate>> {
    if flags & flag == 0 {
        return Some(None);
    }
    let (jobs, per_ms, burst) = (reader.varint()?, reader.varint()?, reader.varint()?);
    Some(Some(Rate { jobs, per_ms, burst }))
}

/// Appends whether and until when a topic is paused.
pub fn encode_pause(pause: Option<Pause>, out: &mut Vec<u8>) {
    match pause {
        None => out.push(RESUMED),
        Some(Pause::Open) => out.push(PAUSED_OPEN),
        Some(Pause::Until(until_ms)) => {
            out.push(PAUSED_UNTIL);
            put_varint(until_ms, out);
        }
    }
}

/// Reads what [`encode_pause`] wrote; the inner `None` = not paused.
pub fn decode_pause(reader: &mut Reader<'_>) -> Option<Option<Pause>> {
    match reader.byte()? {
        RESUMED => Some(None),
        PAUSED_OPEN => Some(Some(Pause::Open)),
        PAUSED_UNTIL => Some(Some(Pause::Until(reader.varint()?))),
        _ => None,
    }
}
