//! A job's record: what the producer gave, without fields that have their default value.
//! `read_head` in job.lua reads the part before the headers.

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::backoff::{Backoff, Delays};
use dormouse_core::error::Error;
use dormouse_core::job::{BodyKind, Content, TickOrigin};
use dormouse_core::limits::{ATTEMPTS_MAX_DEFAULT, PRIORITY_DEFAULT, TTR_MS_DEFAULT};
use dormouse_core::schedule::ScheduleName;

use super::codes::{
    BACKOFF_EXPONENTIAL, BACKOFF_FIXED, BACKOFF_LIST, BODY_KIND, HAS_ATTEMPTS, HAS_BACKOFF,
    HAS_GROUP, HAS_HEADERS, HAS_KEY, HAS_KEY_TTL, HAS_PRIORITY, HAS_SPAN, HAS_TICK, HAS_TTR,
};
use super::{Reader, Writer, malformed};

/// The bits of the flags that are the kind of the body.
const KIND_SHIFT: u32 = BODY_KIND.trailing_zeros();

/// The record without its first field, put_at, which the script adds.
pub(crate) fn encode(content: &Content, priority: u32) -> Bytes {
    let mut flags = u16::from(kind_number(content.body_kind)) << KIND_SHIFT;
    let mut flag = |set: bool, bit: u16| flags |= if set { bit } else { 0 };
    flag(content.key.is_some(), HAS_KEY);
    flag(content.attempts_max != ATTEMPTS_MAX_DEFAULT, HAS_ATTEMPTS);
    flag(content.ttr_ms != TTR_MS_DEFAULT, HAS_TTR);
    flag(priority != PRIORITY_DEFAULT, HAS_PRIORITY);
    flag(content.key_ttl_ms > 0, HAS_KEY_TTL);
    flag(content.backoff.is_some(), HAS_BACKOFF);
    flag(content.headers.is_some(), HAS_HEADERS);
    flag(content.tick.is_some(), HAS_TICK);
    flag(content.expires_after_ms > 0, HAS_SPAN);
    flag(content.group.is_some(), HAS_GROUP);
    let mut to = Writer::with_capacity(64 + content.body.len());
    to.u32(u32::try_from(content.bytes()).unwrap_or(u32::MAX)).u16(flags);
    if flags & HAS_ATTEMPTS != 0 {
        to.u32(content.attempts_max);
    }
    if flags & HAS_TTR != 0 {
        to.u48(content.ttr_ms);
    }
    if flags & HAS_SPAN != 0 {
        to.u48(content.expires_after_ms);
    }
    if flags & HAS_PRIORITY != 0 {
        to.u32(priority);
    }
    if flags & HAS_KEY_TTL != 0 {
        to.u48(content.key_ttl_ms);
    }
    if let Some(group) = &content.group {
        to.short_bytes(group);
    }
    if let Some(key) = &content.key {
        to.short_bytes(key);
    }
    if let Some(backoff) = &content.backoff {
        to.short_bytes(&encode_backoff(backoff));
    }
    if let Some(tick) = &content.tick {
        to.short_bytes(tick.schedule.as_str().as_bytes()).u48(tick.tick_ms);
        to.u32(u32::try_from(tick.missed).unwrap_or(u32::MAX));
    }
    if let Some(headers) = &content.headers {
        to.u16(u16::try_from(headers.len()).unwrap_or(u16::MAX));
        for (name, value) in headers.iter() {
            to.short_bytes(name.as_bytes()).short_bytes(value.as_bytes());
        }
    }
    to.bytes(&content.body).take()
}

/// The content, and the priority at the put.
pub(crate) fn decode(record: &Bytes) -> Result<(Content, u32), Error> {
    let mut from = Reader::new(record);
    let put_at = from.u48()?;
    from.u32()?;
    let flags = from.u16()?;
    let has = |bit: u16| flags & bit != 0;
    let attempts_max = if has(HAS_ATTEMPTS) { from.u32()? } else { ATTEMPTS_MAX_DEFAULT };
    let ttr_ms = if has(HAS_TTR) { from.u48()? } else { TTR_MS_DEFAULT };
    let expires_after_ms = if has(HAS_SPAN) { from.u48()? } else { 0 };
    let priority = if has(HAS_PRIORITY) { from.u32()? } else { PRIORITY_DEFAULT };
    let key_ttl_ms = if has(HAS_KEY_TTL) { from.u48()? } else { 0 };
    let group = if has(HAS_GROUP) { Some(record.slice_ref(from.short_bytes()?)) } else { None };
    let key = if has(HAS_KEY) { Some(record.slice_ref(from.short_bytes()?)) } else { None };
    let backoff =
        if has(HAS_BACKOFF) { Some(Arc::new(decode_backoff(from.short_bytes()?)?)) } else { None };
    let tick = if has(HAS_TICK) { Some(Arc::new(decode_tick(&mut from)?)) } else { None };
    let headers = if has(HAS_HEADERS) { Some(Arc::new(decode_headers(&mut from)?)) } else { None };
    let body_kind = kind_of((flags >> KIND_SHIFT) as u8)?;
    let body = record.slice_ref(from.rest());
    let content = Content {
        key,
        headers,
        body,
        body_kind,
        ttr_ms,
        attempts_max,
        backoff,
        key_ttl_ms,
        expires_after_ms,
        put_at,
        tick,
        group,
    };
    Ok((content, priority))
}

fn kind_number(kind: BodyKind) -> u8 {
    match kind {
        BodyKind::Bytes => 0,
        BodyKind::Text => 1,
        BodyKind::Json => 2,
    }
}

fn kind_of(number: u8) -> Result<BodyKind, Error> {
    match number & 3 {
        0 => Ok(BodyKind::Bytes),
        1 => Ok(BodyKind::Text),
        2 => Ok(BodyKind::Json),
        _ => Err(malformed("unknown kind of a body")),
    }
}

fn decode_tick(from: &mut Reader<'_>) -> Result<TickOrigin, Error> {
    let name = std::str::from_utf8(from.short_bytes()?);
    let schedule = name.ok().and_then(|name| ScheduleName::new(name).ok());
    let schedule = schedule.ok_or_else(|| malformed("no name of a schedule"))?;
    Ok(TickOrigin { schedule, tick_ms: from.u48()?, missed: from.u32()?.into() })
}

fn decode_headers(from: &mut Reader<'_>) -> Result<Vec<(String, String)>, Error> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let count = from.u16()?;
    let mut headers = Vec::new();
    for _ in 0..count {
        headers.push((text(from.short_bytes()?), text(from.short_bytes()?)));
    }
    Ok(headers)
}

/// backoff.lua has the layout, and reads it.
pub(crate) fn encode_backoff(backoff: &Backoff) -> Bytes {
    let mut to = Writer::default();
    match &backoff.delays {
        Delays::Fixed { delay_ms } => to.u8(BACKOFF_FIXED).u48(*delay_ms),
        Delays::Exponential { base_ms, factor, cap_ms } => {
            to.u8(BACKOFF_EXPONENTIAL).u48(*base_ms).u32(*factor).u48(*cap_ms)
        }
        Delays::List { delays_ms } => {
            to.u8(BACKOFF_LIST).u8(u8::try_from(delays_ms.len()).unwrap_or(u8::MAX));
            for &delay_ms in delays_ms {
                to.u48(delay_ms);
            }
            &mut to
        }
    };
    if backoff.jitter_permille != backoff.delays.default_jitter_permille() {
        to.u16(backoff.jitter_permille);
    }
    to.take()
}

pub(crate) fn decode_backoff(bytes: &[u8]) -> Result<Backoff, Error> {
    let mut from = Reader::new(bytes);
    let delays = match from.u8()? {
        BACKOFF_FIXED => Delays::Fixed { delay_ms: from.u48()? },
        BACKOFF_EXPONENTIAL => {
            Delays::Exponential { base_ms: from.u48()?, factor: from.u32()?, cap_ms: from.u48()? }
        }
        BACKOFF_LIST => {
            let count = from.u8()?;
            let delays: Result<_, _> = (0..count).map(|_| from.u48()).collect();
            Delays::List { delays_ms: delays? }
        }
        _ => return Err(malformed("unknown kind of a backoff")),
    };
    let mut backoff = Backoff::from(delays);
    if !from.is_empty() {
        backoff.jitter_permille = from.u16()?;
    }
    Ok(backoff)
}
