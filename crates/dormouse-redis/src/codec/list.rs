//! Encodes the arguments of the script verb `list` and decodes its reply.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, State};
use dormouse_core::op::JobView;
use dormouse_core::topic::TopicName;

use super::get::read_view;
use super::target::state_code;
use crate::wire::{Op, Reader, Records, Writer, codes, malformed};

/// The first job of a page. Waiting jobs are sorted by priority, due time and id; dead ones by time
/// of death and id; leased ones by expiry and id. The latter two have priority 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    pub(crate) priority: u32,
    pub(crate) at_ms: u64,
    pub(crate) id: JobId,
}

/// One page of a partition's list.
#[derive(Debug)]
pub(crate) struct ListPart {
    pub(crate) jobs: Vec<JobView>,
    pub(crate) next: Next,
}

/// What follows after a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing.
    End,
    /// More jobs, from here on.
    From(Cursor),
    /// More jobs, but this one did not fit into the bytes left.
    NoRoom(Cursor),
}

/// `room`: bytes of jobs that fit into the reply.
pub(crate) fn op(state: State, limit: usize, room: u64, from: Option<Cursor>) -> Op {
    let mut to = Writer::default();
    let limit = u16::try_from(limit).unwrap_or(u16::MAX);
    let page = to.u8(state_code(state)).u16(limit).u48(room.min((1 << 48) - 1)).take();
    let from = from
        .map_or_else(Bytes::new, |from| to.u32(from.priority).u48(from.at_ms).id(from.id).take());
    Op::new("list", vec![page, from])
}

pub(crate) fn read(
    reply: &mut Reader<'_>,
    records: &mut Records,
    topic: &TopicName,
) -> Result<ListPart, Error> {
    let count = reply.u16()?;
    let mut jobs = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        jobs.extend(read_view(reply, records, topic)?.transpose()?);
    }
    let end = reply.u8()?;
    let next = Cursor { priority: reply.u32()?, at_ms: reply.u48()?, id: reply.id()? };
    let next = match end {
        codes::LIST_END => Next::End,
        codes::LIST_MORE => Next::From(next),
        codes::LIST_NO_ROOM => Next::NoRoom(next),
        _ => return Err(malformed("unknown end of a list")),
    };
    Ok(ListPart { jobs, next })
}
