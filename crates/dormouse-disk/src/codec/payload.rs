//! A job without its id: key first, so that it is found without reading the rest; body last, so
//! that it needs no length.
//!
//! ```text
//! flags     1 byte  0x01 key  0x02 key lost  0x0c body kind  0x10 headers  0x20 options
//!                   0x40 progress  0x80 refused
//! key       bytes   if 0x01
//! put_at    varint
//! options   1 byte  if 0x20: 0x01 ttr_ms  0x02 attempts_max  0x04 backoff  0x08 key_ttl_ms
//!                   0x10 tick: schedule, tick_ms, missed  0x20 expires_after_ms  0x40 group;
//!                   and those announced, in this order
//! headers   count and (name, value) pairs, if 0x10
//! progress  if 0x40
//! body      the rest
//! ```

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::job::{BodyKind, Content, Job, JobId, TickOrigin};
use dormouse_core::schedule::ScheduleName;

use super::backoff::{decode_backoff, encode_backoff};
use super::progress;
use super::raw::{Reader, put_bytes, put_varint};

const KEY: u8 = 0x01;
const KEY_LOST: u8 = 0x02;
const BODY_KIND_SHIFT: u8 = 2;
const HEADERS: u8 = 0x10;
const OPTIONS: u8 = 0x20;
const PROGRESS: u8 = 0x40;
const REFUSED: u8 = 0x80;

const TTR: u8 = 0x01;
const ATTEMPTS_MAX: u8 = 0x02;
const BACKOFF: u8 = 0x04;
const KEY_TTL: u8 = 0x08;
const TICK: u8 = 0x10;
const EXPIRES_AFTER: u8 = 0x20;
const GROUP: u8 = 0x40;

/// The lease time that costs nothing.
const TTR_MS_IMPLIED: u64 = 60_000;
/// The number of attempts that costs nothing.
const ATTEMPTS_MAX_IMPLIED: u32 = 16;

/// Appends content and progress of a job, not its id.
pub fn encode_payload(job: &Job, out: &mut Vec<u8>) {
    let content = &job.content;
    let options = option_flags(content);
    let bytes_implied = bytes_implied(content);
    let progress_flags = progress::flags(&job.progress, bytes_implied);
    out.reserve(content.body.len() + 32);
    out.push(
        set(content.key.is_some(), KEY)
            | set(job.progress.key_lost, KEY_LOST)
            | body_kind_number(content.body_kind) << BODY_KIND_SHIFT
            | set(content.headers.is_some(), HEADERS)
            | set(options != 0, OPTIONS)
            | set(progress_flags != 0, PROGRESS),
    );
    if let Some(key) = &content.key {
        put_bytes(key, out);
    }
    put_varint(content.put_at, out);
    if options != 0 {
        encode_options(content, options, out);
    }
    if let Some(headers) = &content.headers {
        encode_headers(headers, out);
    }
    if progress_flags != 0 {
        progress::encode_progress(&job.progress, progress_flags, out);
    }
    out.extend_from_slice(&content.body);
}

/// The job of this id from what [`encode_payload`] wrote. Key and body are copies: a leased job
/// must not keep a whole cached block in memory.
pub fn decode_payload(id: JobId, payload: &[u8]) -> Option<Job> {
    let mut reader = Reader::new(payload);
    let flags = reader.byte()?;
    if flags & REFUSED != 0 {
        return None;
    }
    let mut content = Content {
        body_kind: body_kind(flags >> BODY_KIND_SHIFT & 3)?,
        ttr_ms: TTR_MS_IMPLIED,
        attempts_max: ATTEMPTS_MAX_IMPLIED,
        ..Content::default()
    };
    if flags & KEY != 0 {
        content.key = Some(Bytes::copy_from_slice(reader.bytes()?));
    }
    content.put_at = reader.varint()?;
    if flags & OPTIONS != 0 {
        decode_options(&mut content, &mut reader)?;
    }
    if flags & HEADERS != 0 {
        content.headers = Some(Arc::new(decode_headers(&mut reader)?));
    }
    let (mut progress, bytes) = match flags & PROGRESS {
        0 => (progress::fresh(0), None),
        _ => progress::decode_progress(&mut reader)?,
    };
    content.body = body_bytes(reader.rest());
    progress.bytes = bytes.unwrap_or_else(|| bytes_implied(&content));
    progress.key_lost = flags & KEY_LOST != 0;
    Some(Job { id, content, progress })
}

/// A copy of a body. A job that is handed out shares its body with its lease, and `Bytes` that own
/// a plain buffer allocate a counter when they are first shared; a small body and its counter fit
/// into one piece.
fn body_bytes(body: &[u8]) -> Bytes {
    if body.is_empty() {
        return Bytes::new();
    }
    if body.len() <= SMALL_BODY {
        Bytes::from_owner(InlineBody::<SMALL_BODY>::of(body))
    } else if body.len() <= MEDIUM_BODY {
        Bytes::from_owner(InlineBody::<MEDIUM_BODY>::of(body))
    } else if body.len() <= LARGE_BODY {
        Bytes::from_owner(InlineBody::<LARGE_BODY>::of(body))
    } else {
        Bytes::copy_from_slice(body)
    }
}

/// Bodies up to these sizes are kept in one piece with their counter.
const SMALL_BODY: usize = 62;
const MEDIUM_BODY: usize = 126;
const LARGE_BODY: usize = 254;

struct InlineBody<const N: usize> {
    len: u8,
    bytes: [u8; N],
}

impl<const N: usize> InlineBody<N> {
    /// A copy of a body of at most `N` bytes, and at most 255.
    fn of(body: &[u8]) -> InlineBody<N> {
        let mut bytes = [0; N];
        bytes[..body.len()].copy_from_slice(body);
        InlineBody { len: body.len() as u8, bytes }
    }
}

impl<const N: usize> AsRef<[u8]> for InlineBody<N> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// The key that this payload holds taken: none if it was given without, or if it passed on.
pub fn payload_key(payload: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(payload);
    match reader.byte()? & (KEY | KEY_LOST) {
        KEY => reader.bytes(),
        _ => None,
    }
}

fn set(condition: bool, flag: u8) -> u8 {
    if condition { flag } else { 0 }
}

/// The byte count that costs nothing: the true one.
fn bytes_implied(content: &Content) -> u32 {
    u32::try_from(content.bytes()).unwrap_or(u32::MAX)
}

fn option_flags(content: &Content) -> u8 {
    set(content.ttr_ms != TTR_MS_IMPLIED, TTR)
        | set(content.attempts_max != ATTEMPTS_MAX_IMPLIED, ATTEMPTS_MAX)
        | set(content.backoff.is_some(), BACKOFF)
        | set(content.key_ttl_ms != 0, KEY_TTL)
        | set(content.tick.is_some(), TICK)
        | set(content.expires_after_ms != 0, EXPIRES_AFTER)
        | set(content.group.is_some(), GROUP)
}

fn encode_options(content: &Content, options: u8, out: &mut Vec<u8>) {
    out.push(options);
    if options & TTR != 0 {
        put_varint(content.ttr_ms, out);
    }
    if options & ATTEMPTS_MAX != 0 {
        put_varint(u64::from(content.attempts_max), out);
    }
    if let Some(backoff) = &content.backoff {
        encode_backoff(backoff, out);
    }
    if options & KEY_TTL != 0 {
        put_varint(content.key_ttl_ms, out);
    }
    if let Some(tick) = &content.tick {
        put_bytes(tick.schedule.as_str().as_bytes(), out);
        put_varint(tick.tick_ms, out);
        put_varint(tick.missed, out);
    }
    if options & EXPIRES_AFTER != 0 {
        put_varint(content.expires_after_ms, out);
    }
    if let Some(group) = &content.group {
        put_bytes(group, out);
    }
}

fn decode_options(content: &mut Content, reader: &mut Reader<'_>) -> Option<()> {
    let options = reader.byte()?;
    let known = TTR | ATTEMPTS_MAX | BACKOFF | KEY_TTL | TICK | EXPIRES_AFTER | GROUP;
    if options & !known != 0 {
        return None;
    }
    if options & TTR != 0 {
        content.ttr_ms = reader.varint()?;
    }
    if options & ATTEMPTS_MAX != 0 {
        content.attempts_max = reader.varint_u32()?;
    }
    if options & BACKOFF != 0 {
        content.backoff = Some(Arc::new(decode_backoff(reader)?));
    }
    if options & KEY_TTL != 0 {
        content.key_ttl_ms = reader.varint()?;
    }
    if options & TICK != 0 {
        let schedule = ScheduleName::new(reader.text()?).ok()?;
        let (tick_ms, missed) = (reader.varint()?, reader.varint()?);
        content.tick = Some(Arc::new(TickOrigin { schedule, tick_ms, missed }));
    }
    if options & EXPIRES_AFTER != 0 {
        content.expires_after_ms = reader.varint()?;
    }
    if options & GROUP != 0 {
        content.group = Some(Bytes::copy_from_slice(reader.bytes()?));
    }
    Some(())
}

fn encode_headers(headers: &[(String, String)], out: &mut Vec<u8>) {
    put_varint(headers.len() as u64, out);
    for (name, value) in headers {
        put_bytes(name.as_bytes(), out);
        put_bytes(value.as_bytes(), out);
    }
}

fn decode_headers(reader: &mut Reader<'_>) -> Option<Vec<(String, String)>> {
    // A pair takes two bytes in the file and two strings in memory; pushing as they come keeps the
    // allocation in step with what was really there.
    let count = reader.count(2)?;
    let mut headers = Vec::new();
    for _ in 0..count {
        headers.push((reader.text()?.to_owned(), reader.text()?.to_owned()));
    }
    Some(headers)
}

fn body_kind_number(kind: BodyKind) -> u8 {
    match kind {
        BodyKind::Bytes => 0,
        BodyKind::Text => 1,
        BodyKind::Json => 2,
    }
}

fn body_kind(number: u8) -> Option<BodyKind> {
    match number {
        0 => Some(BodyKind::Bytes),
        1 => Some(BodyKind::Text),
        2 => Some(BodyKind::Json),
        _ => None,
    }
}
