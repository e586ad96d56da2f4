//! Places: topic, class, due_at, id, each a varint.

use dormouse_core::job::JobId;
use dormouse_core::place::{Class, Place};
use dormouse_core::topic::TopicNo;

use super::raw::{Reader, put_varint};

/// Appends a whole place.
#[inline]
pub fn encode_place(place: &Place, out: &mut Vec<u8>) {
    put_varint(u64::from(place.topic.0), out);
    encode_spot(place, out);
    put_varint(place.id.0, out);
}

/// Reads a whole place.
#[inline]
pub fn decode_place(reader: &mut Reader<'_>) -> Option<Place> {
    let topic = TopicNo(reader.varint_u32()?);
    let spot = decode_spot(topic, JobId(0), reader)?;
    Some(Place { id: JobId(reader.varint()?), ..spot })
}

/// Appends class and due time only, where topic and id are known.
#[inline]
pub(super) fn encode_spot(place: &Place, out: &mut Vec<u8>) {
    put_varint(place.class.to_u64(), out);
    put_varint(place.due_at, out);
}

/// Reads what [`encode_spot`] wrote.
#[inline]
pub(super) fn decode_spot(topic: TopicNo, id: JobId, reader: &mut Reader<'_>) -> Option<Place> {
    let class = Class::from_u64(reader.varint()?)?;
    Some(Place { topic, class, due_at: reader.varint()?, id })
}
