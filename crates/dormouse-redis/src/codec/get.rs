//! Encodes the arguments of the script verb `get` and decodes its reply.

use dormouse_core::error::Error;
use dormouse_core::job::Job;
use dormouse_core::op::{JobView, Target};
use dormouse_core::refusal::{does_not_fit, no_job};
use dormouse_core::topic::TopicName;

use super::{ItemResult, target};
use crate::wire::{Op, Reader, Records, codes, malformed, number, progress, record};

/// `room`: bytes of jobs that fit into the reply.
pub(crate) fn op(targets: &[Target], room: u64) -> Op {
    let targets = targets.iter().map(target::arg);
    Op::new("get", std::iter::once(number(room)).chain(targets).collect())
}

pub(crate) fn read(
    reply: &mut Reader<'_>,
    records: &mut Records,
    topic: &TopicName,
    target: &Target,
) -> ItemResult<JobView> {
    Ok(read_view(reply, records, topic)?.unwrap_or_else(|| Err(no_job(target))))
}

/// `None`: there is no such job; an error: it does not fit into the reply.
pub(crate) fn read_view(
    reply: &mut Reader<'_>,
    records: &mut Records,
    topic: &TopicName,
) -> Result<Option<Result<JobView, Error>>, Error> {
    match reply.u8()? {
        codes::MISSING => return Ok(None),
        codes::FOUND => {}
        codes::NO_ROOM => return Ok(Some(Err(does_not_fit(reply.id()?)))),
        _ => return Err(malformed("unknown result of a read")),
    }
    let (state, due_at) = (target::known_state(reply.u8()?)?, reply.u48()?);
    let (lapsed, id) = (reply.u8()? == 1, reply.id()?);
    let text = reply.short_bytes()?;
    let record = records.next()?;
    if record.is_empty() {
        // It was removed before the lost reply was requested again.
        return Ok(None);
    }
    let (content, priority) = record::decode(&record)?;
    let progress = if text.is_empty() {
        progress::fresh(u32::try_from(content.bytes()).unwrap_or(u32::MAX), priority)
    } else {
        progress::decode(text, lapsed)?
    };
    let job = Job { id, content, progress };
    Ok(Some(Ok(JobView { topic: topic.clone(), state, due_at, job })))
}
