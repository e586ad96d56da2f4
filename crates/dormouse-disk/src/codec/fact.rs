//! Facts: one byte of kind, then the fields.
//!
//! ```text
//! 1 put           flags (0x01 left, 0x02 key loser), at: place, [left: place, left_bytes],
//!                 [loser id], payload
//! 2 move          flags, cause, id, topic, [left], [to], progress, [key]; flags: 0x03 destination
//!                 (0 gone, 1 leased, 2 rest, 3 hold), 0x04 left, 0x08 left is a whole place,
//!                 0x10 key lost, 0x20 key, 0x40 session, 0x80 to is a whole place;
//!                 left and to: class and due_at, or a whole place; to if leased: ttr_ms
//! 3 purged        topic
//! 4 topic born    topic, name
//! 5 topic gone    topic
//! 6 topic set     topic, settings
//! 7 topic paused  topic, pause
//! 8 lock held     name, owner, fence, depth, ttl_ms
//! 9 lock freed    name
//! 10 push set     topic, 1 byte (0 removed, 1 set), [push]
//! ```

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::fact::{Cause, Destination, Fact};
use dormouse_core::job::{JobId, Progress};
use dormouse_core::place::Place;
use dormouse_core::topic::{TopicName, TopicNo};

use super::payload::{decode_payload, encode_payload};
use super::place::{decode_place, decode_spot, encode_place, encode_spot};
use super::progress;
use super::raw::{Reader, put_bytes, put_sized, put_varint};
use super::topic::{
    decode_pause, decode_push, decode_settings, encode_pause, encode_push, encode_settings,
};

/// The highest number that a fact's kind can ever have; other records begin above it.
pub(crate) const FACT_KIND_MAX: u8 = 31;

const PUT: u8 = 1;
const MOVE: u8 = 2;
const PURGED: u8 = 3;
const TOPIC_BORN: u8 = 4;
const TOPIC_GONE: u8 = 5;
const TOPIC_SET: u8 = 6;
const TOPIC_PAUSED: u8 = 7;
const LOCK_HELD: u8 = 8;
const LOCK_FREED: u8 = 9;
const PUSH_SET: u8 = 10;

const PUT_LEFT: u8 = 0x01;
const PUT_LOSER: u8 = 0x02;

const DESTINATION: u8 = 0x03;
const TO_GONE: u8 = 0;
const TO_LEASED: u8 = 1;
const TO_REST: u8 = 2;
const TO_HOLD: u8 = 3;
const LEFT: u8 = 0x04;
const LEFT_WHOLE: u8 = 0x08;
const KEY_LOST: u8 = 0x10;
const KEY: u8 = 0x20;
const SESSION: u8 = 0x40;
const TO_WHOLE: u8 = 0x80;

/// A put as it stands in a journal, its job not yet decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutParts<'a> {
    /// Where the job rests; its id is the job's.
    pub at: Place,
    /// The place the replaced job, or the hold on its key, left.
    pub left: Option<Place>,
    /// Bytes that the replaced job counted against byte limits; 0 without one.
    pub left_bytes: u32,
    /// The leased job that lost its key to this one.
    pub key_loser: Option<JobId>,
    /// The job, as [`encode_payload`] wrote it.
    pub payload: &'a [u8],
}

/// Appends a put whose job is already encoded. `left_bytes` counts only with a place left.
#[inline]
pub fn encode_put(
    at: &Place,
    left: Option<&Place>,
    left_bytes: u32,
    key_loser: Option<JobId>,
    payload: &[u8],
    out: &mut Vec<u8>,
) {
    encode_put_head(at, left, left_bytes, key_loser, out);
    put_bytes(payload, out);
}

#[inline]
fn encode_put_head(
    at: &Place,
    left: Option<&Place>,
    left_bytes: u32,
    key_loser: Option<JobId>,
    out: &mut Vec<u8>,
) {
    let left_flag = if left.is_some() { PUT_LEFT } else { 0 };
    let loser_flag = if key_loser.is_some() { PUT_LOSER } else { 0 };
    out.extend_from_slice(&[PUT, left_flag | loser_flag]);
    encode_place(at, out);
    if let Some(left) = left {
        encode_place(left, out);
        put_varint(u64::from(left_bytes), out);
    }
    if let Some(JobId(loser)) = key_loser {
        put_varint(loser, out);
    }
}

/// Reads a put without decoding its job; `None` also if the next record is no put.
#[inline]
pub fn decode_put<'a>(reader: &mut Reader<'a>) -> Option<PutParts<'a>> {
    let [kind, flags] = reader.array()?;
    if kind != PUT || flags & !(PUT_LEFT | PUT_LOSER) != 0 {
        return None;
    }
    let at = decode_place(reader)?;
    let (left, left_bytes) = match flags & PUT_LEFT {
        0 => (None, 0),
        _ => (Some(decode_place(reader)?), reader.varint_u32()?),
    };
    let key_loser = if flags & PUT_LOSER != 0 { Some(JobId(reader.varint()?)) } else { None };
    Some(PutParts { at, left, left_bytes, key_loser, payload: reader.bytes()? })
}

/// Appends a fact.
pub fn encode_fact(fact: &Fact, out: &mut Vec<u8>) {
    let kind_and_topic = |kind: u8, topic: TopicNo, out: &mut Vec<u8>| {
        out.push(kind);
        put_varint(u64::from(topic.0), out);
    };
    match fact {
        Fact::Put { job, at, left, left_bytes, key_loser } => {
            encode_put_head(at, left.as_ref(), *left_bytes, *key_loser, out);
            put_sized(out, |out| encode_payload(job, out));
        }
        Fact::Move { id, topic, left, to, progress, key, cause } => {
            let header = MoveHeader { id: *id, topic: *topic, cause: *cause };
            encode_move(&header, left.as_ref(), to, progress, key.as_ref(), out);
        }
        Fact::Purged { topic } => kind_and_topic(PURGED, *topic, out),
        Fact::TopicBorn { topic, name } => {
            kind_and_topic(TOPIC_BORN, *topic, out);
            put_bytes(name.as_str().as_bytes(), out);
        }
        Fact::TopicGone { topic } => kind_and_topic(TOPIC_GONE, *topic, out),
        Fact::TopicSet { topic, settings } => {
            kind_and_topic(TOPIC_SET, *topic, out);
            encode_settings(settings, out);
        }
        Fact::TopicPaused { topic, pause } => {
            kind_and_topic(TOPIC_PAUSED, *topic, out);
            encode_pause(*pause, out);
        }
        Fact::LockHeld { name, owner, fence, depth, ttl_ms } => {
            out.push(LOCK_HELD);
            put_bytes(name, out);
            put_bytes(owner, out);
            put_varint(*fence, out);
            put_varint(u64::from(*depth), out);
            put_varint(*ttl_ms, out);
        }
        Fact::LockFreed { name } => {
            out.push(LOCK_FREED);
            put_bytes(name, out);
        }
        Fact::PushSet { topic, push } => {
            kind_and_topic(PUSH_SET, *topic, out);
            out.push(u8::from(push.is_some()));
            push.iter().for_each(|push| encode_push(push, out));
        }
    }
}

/// Reads one fact.
pub fn decode_fact(reader: &mut Reader<'_>) -> Option<Fact> {
    if reader.peek()? == PUT {
        let PutParts { at, left, left_bytes, key_loser, payload } = decode_put(reader)?;
        let job = decode_payload(at.id, payload)?;
        return Some(Fact::Put { job, at, left, left_bytes, key_loser });
    }
    let kind = reader.byte()?;
    let topic_no = |reader: &mut Reader<'_>| reader.varint_u32().map(TopicNo);
    Some(match kind {
        MOVE => decode_move(reader)?,
        PURGED => Fact::Purged { topic: topic_no(reader)? },
        TOPIC_BORN => {
            Fact::TopicBorn { topic: topic_no(reader)?, name: TopicName::new(reader.text()?).ok()? }
        }
        TOPIC_GONE => Fact::TopicGone { topic: topic_no(reader)? },
        TOPIC_SET => {
            Fact::TopicSet { topic: topic_no(reader)?, settings: decode_settings(reader)? }
        }
        TOPIC_PAUSED => {
            Fact::TopicPaused { topic: topic_no(reader)?, pause: decode_pause(reader)? }
        }
        LOCK_HELD => Fact::LockHeld {
            name: Bytes::copy_from_slice(reader.bytes()?),
            owner: Bytes::copy_from_slice(reader.bytes()?),
            fence: reader.varint()?,
            depth: reader.varint_u32()?,
            ttl_ms: reader.varint()?,
        },
        LOCK_FREED => Fact::LockFreed { name: Bytes::copy_from_slice(reader.bytes()?) },
        PUSH_SET => {
            let topic = topic_no(reader)?;
            let push = match reader.byte()? {
                0 => None,
                1 => Some(Arc::new(decode_push(reader)?)),
                _ => return None,
            };
            Fact::PushSet { topic, push }
        }
        _ => return None,
    })
}

/// The head of a move; its places usually share id and topic with it.
struct MoveHeader {
    id: JobId,
    topic: TopicNo,
    cause: Cause,
}

impl MoveHeader {
    fn shares(&self, place: &Place) -> bool {
        place.id == self.id && place.topic == self.topic
    }

    fn encode_place(&self, place: &Place, out: &mut Vec<u8>) {
        if self.shares(place) { encode_spot(place, out) } else { encode_place(place, out) }
    }

    fn decode_place(&self, whole: bool, reader: &mut Reader<'_>) -> Option<Place> {
        if whole { decode_place(reader) } else { decode_spot(self.topic, self.id, reader) }
    }
}

fn encode_move(
    header: &MoveHeader,
    left: Option<&Place>,
    to: &Destination,
    progress: &Progress,
    key: Option<&Bytes>,
    out: &mut Vec<u8>,
) {
    let whole = |place: &Place, flag: u8| if header.shares(place) { 0 } else { flag };
    let to_flags = match to {
        Destination::Gone => TO_GONE,
        Destination::Leased { session, .. } => TO_LEASED | if *session { SESSION } else { 0 },
        Destination::Rest(place) => TO_REST | whole(place, TO_WHOLE),
        Destination::Hold(place) => TO_HOLD | whole(place, TO_WHOLE),
    };
    let left_flags = left.map_or(0, |left| LEFT | whole(left, LEFT_WHOLE));
    let key_lost_flag = if progress.key_lost { KEY_LOST } else { 0 };
    let key_flag = if key.is_some() { KEY } else { 0 };
    let flags = to_flags | left_flags | key_lost_flag | key_flag;
    out.extend_from_slice(&[MOVE, flags, header.cause.to_u8()]);
    put_varint(header.id.0, out);
    put_varint(u64::from(header.topic.0), out);
    if let Some(left) = left {
        header.encode_place(left, out);
    }
    match to {
        Destination::Gone => {}
        Destination::Leased { ttr_ms, .. } => put_varint(*ttr_ms, out),
        Destination::Rest(place) | Destination::Hold(place) => header.encode_place(place, out),
    }
    progress::encode_progress(progress, progress::flags(progress, 0), out);
    if let Some(key) = key {
        put_bytes(key, out);
    }
}

fn decode_move(reader: &mut Reader<'_>) -> Option<Fact> {
    let [flags, cause] = reader.array()?;
    if !move_flags_fit(flags) {
        return None;
    }
    let header = MoveHeader {
        cause: Cause::from_u8(cause)?,
        id: JobId(reader.varint()?),
        topic: TopicNo(reader.varint_u32()?),
    };
    let left = match flags & LEFT {
        0 => None,
        _ => Some(header.decode_place(flags & LEFT_WHOLE != 0, reader)?),
    };
    let to_whole = flags & TO_WHOLE != 0;
    let to = match flags & DESTINATION {
        TO_GONE => Destination::Gone,
        TO_LEASED => {
            Destination::Leased { ttr_ms: reader.varint()?, session: flags & SESSION != 0 }
        }
        TO_REST => Destination::Rest(header.decode_place(to_whole, reader)?),
        _ => Destination::Hold(header.decode_place(to_whole, reader)?),
    };
    let (mut progress, _) = progress::decode_progress(reader)?;
    progress.key_lost = flags & KEY_LOST != 0;
    let key = match flags & KEY {
        0 => None,
        _ => Some(Bytes::copy_from_slice(reader.bytes()?)),
    };
    let MoveHeader { id, topic, cause } = header;
    Some(Fact::Move { id, topic, left, to, progress, key, cause })
}

/// Whether the flags make sense together: a bit without the one it belongs to is not ours.
fn move_flags_fit(flags: u8) -> bool {
    let rests = flags & DESTINATION == TO_REST || flags & DESTINATION == TO_HOLD;
    let leased = flags & DESTINATION == TO_LEASED;
    (flags & SESSION == 0 || leased)
        && (flags & TO_WHOLE == 0 || rests)
        && (flags & LEFT_WHOLE == 0 || flags & LEFT != 0)
}
