//! list, in words of the script.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, State};
use dormouse_core::op::JobView;
use dormouse_core::topic::TopicName;

use super::get::read_view;
use super::target::state_number;
use crate::wire::{Op, Reader, Records, Writer, strange};

/// Where a page begins: waiting jobs by priority, due time and id, dead ones by death and id,
/// leased ones by the end of the lease and id, both with priority 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    pub(crate) priority: u32,
    pub(crate) at_ms: u64,
    pub(crate) id: JobId,
}

/// Part of a partition's list.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) jobs: Vec<JobView>,
    pub(crate) next: Next,
}

/// How a list goes on after a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// That was all.
    End,
    /// From here; a script gives no more than so many jobs.
    From(Cursor),
    /// From here, but this job did not fit into the bytes that were left.
    NoRoom(Cursor),
}

/// `room` are the bytes of jobs that the answer may have.
pub(crate) fn op(state: State, limit: usize, room: u64, from: Option<Cursor>) -> Op {
    let mut to = Writer::default();
    let limit = u16::try_from(limit).unwrap_or(u16::MAX);
    let page = to.u8(state_number(state)).u16(limit).u48(room.min((1 << 48) - 1)).take();
    let from = from
        .map_or_else(Bytes::new, |from| to.u32(from.priority).u48(from.at_ms).id(from.id).take());
    Op::new("list", vec![page, from])
}

pub(crate) fn read(
    answer: &mut Reader<'_>,
    records: &mut Records,
    topic: &TopicName,
) -> Result<Part, Error> {
    let count = answer.u16()?;
    let mut jobs = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        jobs.extend(read_view(answer, records, topic)?.transpose()?);
    }
    let end = answer.u8()?;
    let next = Cursor { priority: answer.u32()?, at_ms: answer.u48()?, id: answer.id()? };
    let next = match end {
        0 => Next::End,
        1 => Next::From(next),
        2 => Next::NoRoom(next),
        _ => return Err(strange("a list has no such end")),
    };
    Ok(Part { jobs, next })
}
