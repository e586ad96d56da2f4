//! Settings and pauses of topics.

use std::sync::Arc;

use dormouse_core::topic::{Pause, Settings};

use super::backoff::{decode_backoff, encode_backoff};
use super::raw::{Reader, put_varint};

const TTR: u8 = 0x01;
const ATTEMPTS_MAX: u8 = 0x02;
const BACKOFF: u8 = 0x04;
const JOBS_MAX: u8 = 0x08;
const BYTES_MAX: u8 = 0x10;
const DEAD_TTL: u8 = 0x20;
const DEAD_MAX: u8 = 0x40;
const REFUSED: u8 = 0x80;

const RESUMED: u8 = 0;
const PAUSED_OPEN: u8 = 1;
const PAUSED_UNTIL: u8 = 2;

/// Appends one byte of flags and the settings they announce.
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
    out.push(flags | if settings.backoff.is_some() { BACKOFF } else { 0 });
    numbers.into_iter().filter_map(|(_, number)| number).for_each(|number| put_varint(number, out));
    if let Some(backoff) = &settings.backoff {
        encode_backoff(backoff, out);
    }
}

/// Reads what [`encode_settings`] wrote.
pub fn decode_settings(reader: &mut Reader<'_>) -> Option<Settings> {
    let flags = reader.byte()?;
    if flags & REFUSED != 0 {
        return None;
    }
    let mut number = |flag: u8| match flags & flag {
        0 => Some(None),
        _ => reader.varint().map(Some),
    };
    let mut settings = Settings { ttr_ms: number(TTR)?, ..Settings::default() };
    settings.attempts_max = number(ATTEMPTS_MAX)?.map(u32::try_from).transpose().ok()?;
    settings.jobs_max = number(JOBS_MAX)?;
    settings.bytes_max = number(BYTES_MAX)?;
    settings.dead_ttl_ms = number(DEAD_TTL)?;
    settings.dead_max = number(DEAD_MAX)?;
    if flags & BACKOFF != 0 {
        settings.backoff = Some(Arc::new(decode_backoff(reader)?));
    }
    Some(settings)
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
