//! A schedule as bytes, the same in every store.
//!
//! ```text
//! format      1 byte   1
//! flags       varint   the fields that are given, from 0x01 on in the order below
//! overlap     1 byte   0 skip, 1 wait, 2 allow, 3 replace
//! catchup     1 byte   0 one, 1 all
//! parked      1 byte   0 no, 1 busy, 2 paused, 3 broken
//! body kind   1 byte   0 bytes, 1 text, 2 JSON
//! rule        1 byte   0 cron: text, zone; 1 every: span; 2 gap: span
//! version, anchor, last, given, missed, overlapped, skipped, without_job
//! if given: jitter, start_at, end_at, late_max, ticks_max, priority, ttr, attempts_max, end,
//!             last job (id, tick, put_at), pause (0 open, else the instant plus one),
//!             backoff (jitter, kind, delays), headers (count, then names and values),
//!             expires_after, group
//! body        the rest
//! ```
//!
//! Numbers are varints, texts have their length before them.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    Catchup, Definition, LastJob, Overlap, Parked, Recurrence, RuleSpec, Schedule, Template,
    TickCounts, TickProgress,
};
use crate::backoff::{Backoff, Delays};
use crate::job::{BodyKind, JobId};
use crate::topic::Pause;

const FORMAT: u8 = 1;

const PARKED: [Parked; 4] = [Parked::No, Parked::Busy, Parked::Paused, Parked::Broken];
const KINDS: [BodyKind; 3] = [BodyKind::Bytes, BodyKind::Text, BodyKind::Json];

const CRON: u8 = 0;
const EVERY: u8 = 1;
const GAP: u8 = 2;

const BACKOFF_FIXED: u8 = 0;
const BACKOFF_EXPONENTIAL: u8 = 1;
const BACKOFF_LIST: u8 = 2;

/// Flags of the fields that are no plain numbers.
const LAST_JOB: u64 = 1 << 9;
const PAUSE: u64 = 1 << 10;
const BACKOFF: u64 = 1 << 11;
const HEADERS: u64 = 1 << 12;
const EXPIRES_AFTER: u64 = 1 << 13;
const GROUP: u64 = 1 << 14;

pub(super) fn encode(schedule: &Schedule) -> Bytes {
    let Schedule { definition, version, progress } = schedule;
    let Definition { recurrence, template, overlap, catchup, late_max_ms, ticks_max } = definition;
    let TickProgress { anchor_ms, end_ms, last_ms, counts, without_job, last_job, pause, parked } =
        progress;
    let numbers = [
        Some(recurrence.jitter_ms).filter(|jitter_ms| *jitter_ms > 0),
        recurrence.start_at,
        recurrence.end_at,
        *late_max_ms,
        *ticks_max,
        template.priority.map(u64::from),
        // It was checked to be positive.
        template.ttr_ms.map(i64::unsigned_abs),
        template.attempts_max.map(u64::from),
        *end_ms,
    ];
    let given = numbers.iter().enumerate().filter(|(_, number)| number.is_some());
    let mut flags = given.fold(0, |flags, (index, _)| flags | 1 << index);
    let mut flag = |is_given: bool, bit: u64| flags |= if is_given { bit } else { 0 };
    flag(last_job.is_some(), LAST_JOB);
    flag(pause.is_some(), PAUSE);
    flag(template.backoff.is_some(), BACKOFF);
    flag(template.headers.is_some(), HEADERS);
    flag(template.expires_after_ms.is_some(), EXPIRES_AFTER);
    flag(template.group.is_some(), GROUP);

    let mut out = Vec::with_capacity(96 + template.body.len());
    out.push(FORMAT);
    put_varint(flags, &mut out);
    out.push(index_of(&Overlap::ALL, overlap));
    out.push(index_of(&Catchup::ALL, catchup));
    out.push(index_of(&PARKED, parked));
    out.push(index_of(&KINDS, &template.body_kind));
    encode_spec(&recurrence.spec, &mut out);
    let TickCounts { given, missed, overlapped, skipped } = *counts;
    let counts = [given, missed, overlapped, skipped, *without_job];
    for number in [*version, *anchor_ms, *last_ms].into_iter().chain(counts) {
        put_varint(number, &mut out);
    }
    numbers.into_iter().flatten().for_each(|number| put_varint(number, &mut out));
    if let Some(LastJob { id, tick_ms, put_at }) = last_job {
        [id.0, *tick_ms, *put_at].into_iter().for_each(|number| put_varint(number, &mut out));
    }
    match pause {
        Some(Pause::Open) => put_varint(0, &mut out),
        Some(Pause::Until(end_ms)) => put_varint(end_ms.saturating_add(1), &mut out),
        None => {}
    }
    if let Some(backoff) = &template.backoff {
        encode_backoff(backoff, &mut out);
    }
    if let Some(headers) = &template.headers {
        put_varint(headers.len() as u64, &mut out);
        for (name, value) in headers.iter() {
            put_text(name, &mut out);
            put_text(value, &mut out);
        }
    }
    if let Some(span_ms) = template.expires_after_ms {
        put_varint(span_ms.unsigned_abs(), &mut out);
    }
    if let Some(group) = &template.group {
        put_varint(group.len() as u64, &mut out);
        out.extend_from_slice(group);
    }
    out.extend_from_slice(&template.body);
    out.into()
}

/// `None` if that is no record, or one of a later format.
pub(super) fn decode(record: &Bytes) -> Option<Schedule> {
    let mut from = Reader(record);
    if from.byte()? != FORMAT {
        return None;
    }
    let flags = from.varint()?;
    let overlap = *Overlap::ALL.get(usize::from(from.byte()?))?;
    let catchup = *Catchup::ALL.get(usize::from(from.byte()?))?;
    let parked = *PARKED.get(usize::from(from.byte()?))?;
    let body_kind = *KINDS.get(usize::from(from.byte()?))?;
    let spec = decode_spec(&mut from)?;
    let (version, anchor_ms, last_ms) = (from.varint()?, from.varint()?, from.varint()?);
    let counts = TickCounts {
        given: from.varint()?,
        missed: from.varint()?,
        overlapped: from.varint()?,
        skipped: from.varint()?,
    };
    let without_job = from.varint()?;
    let mut number = |index: u32| match flags & 1 << index {
        0 => Some(None),
        _ => from.varint().map(Some),
    };
    let jitter_ms = number(0)?.unwrap_or(0);
    let (start_at, end_at, late_max_ms, ticks_max) =
        (number(1)?, number(2)?, number(3)?, number(4)?);
    let priority = number(5)?.map(u32::try_from).transpose().ok()?;
    let ttr_ms = number(6)?.map(i64::try_from).transpose().ok()?;
    let attempts_max = number(7)?.map(u32::try_from).transpose().ok()?;
    let end_ms = number(8)?;
    let is_given = |bit: u64| flags & bit != 0;
    let last_job = match is_given(LAST_JOB) {
        false => None,
        true => Some(LastJob {
            id: JobId(from.varint()?),
            tick_ms: from.varint()?,
            put_at: from.varint()?,
        }),
    };
    let pause = match is_given(PAUSE) {
        false => None,
        true => Some(from.varint()?.checked_sub(1).map_or(Pause::Open, Pause::Until)),
    };
    let backoff = if is_given(BACKOFF) { Some(Arc::new(decode_backoff(&mut from)?)) } else { None };
    let headers = if is_given(HEADERS) { Some(Arc::new(decode_headers(&mut from)?)) } else { None };
    let expires_after_ms = match is_given(EXPIRES_AFTER) {
        false => None,
        true => Some(i64::try_from(from.varint()?).ok()?),
    };
    let group = if is_given(GROUP) { Some(Bytes::copy_from_slice(from.bytes()?)) } else { None };
    let body = record.slice_ref(from.0);
    let recurrence = Recurrence { spec, jitter_ms, start_at, end_at };
    let template = Template {
        body,
        body_kind,
        headers,
        priority,
        ttr_ms,
        attempts_max,
        backoff,
        expires_after_ms,
        group,
    };
    let definition = Definition { recurrence, template, overlap, catchup, late_max_ms, ticks_max };
    let progress =
        TickProgress { anchor_ms, end_ms, last_ms, counts, without_job, last_job, pause, parked };
    Some(Schedule { definition, version, progress })
}

fn encode_spec(spec: &RuleSpec, out: &mut Vec<u8>) {
    match spec {
        RuleSpec::Cron { text, zone } => {
            out.push(CRON);
            put_text(text, out);
            put_text(zone, out);
        }
        RuleSpec::Every { span_ms } => {
            out.push(EVERY);
            put_varint(*span_ms, out);
        }
        RuleSpec::Gap { span_ms } => {
            out.push(GAP);
            put_varint(*span_ms, out);
        }
    }
}

fn decode_spec(from: &mut Reader<'_>) -> Option<RuleSpec> {
    match from.byte()? {
        CRON => Some(RuleSpec::Cron { text: from.text()?, zone: from.text()? }),
        EVERY => Some(RuleSpec::Every { span_ms: from.varint()? }),
        GAP => Some(RuleSpec::Gap { span_ms: from.varint()? }),
        _ => None,
    }
}

fn encode_backoff(backoff: &Backoff, out: &mut Vec<u8>) {
    put_varint(u64::from(backoff.jitter_permille), out);
    match &backoff.delays {
        Delays::Fixed { delay_ms } => {
            out.push(BACKOFF_FIXED);
            put_varint(*delay_ms, out);
        }
        Delays::Exponential { base_ms, factor, cap_ms } => {
            out.push(BACKOFF_EXPONENTIAL);
            put_varint(*base_ms, out);
            put_varint(u64::from(*factor), out);
            put_varint(*cap_ms, out);
        }
        Delays::List { delays_ms } => {
            out.push(BACKOFF_LIST);
            put_varint(delays_ms.len() as u64, out);
            delays_ms.iter().for_each(|delay_ms| put_varint(*delay_ms, out));
        }
    }
}

fn decode_backoff(from: &mut Reader<'_>) -> Option<Backoff> {
    let jitter_permille = u16::try_from(from.varint()?).ok()?;
    let delays = match from.byte()? {
        BACKOFF_FIXED => Delays::Fixed { delay_ms: from.varint()? },
        BACKOFF_EXPONENTIAL => Delays::Exponential {
            base_ms: from.varint()?,
            factor: u32::try_from(from.varint()?).ok()?,
            cap_ms: from.varint()?,
        },
        BACKOFF_LIST => {
            let count = from.varint()?;
            let delays_ms: Option<Vec<u64>> = (0..count).map(|_| from.varint()).collect();
            Delays::List { delays_ms: delays_ms? }
        }
        _ => return None,
    };
    Some(Backoff { delays, jitter_permille })
}

fn decode_headers(from: &mut Reader<'_>) -> Option<Vec<(String, String)>> {
    let count = from.varint()?;
    (0..count).map(|_| Some((from.text()?, from.text()?))).collect()
}

/// The number of a value in its table; every value is in it.
fn index_of<T: PartialEq>(table: &[T], value: &T) -> u8 {
    table.iter().position(|other| other == value).unwrap_or(0) as u8
}

fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    put_varint(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// The bytes that are still to be read.
struct Reader<'r>(&'r [u8]);

impl<'r> Reader<'r> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits.leading_zeros() < shift {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'r [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        std::str::from_utf8(self.bytes()?).ok().map(str::to_owned)
    }
}
