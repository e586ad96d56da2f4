//! get, in words of the script.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::Job;
use dormouse_core::op::{JobView, Target};
use dormouse_core::refusal::{does_not_fit, no_job};
use dormouse_core::topic::TopicName;

use super::target;
use crate::wire::{Op, Reader, Records, progress, record, strange};

/// `room` are the bytes of jobs that the answer may have.
pub(crate) fn op<'a>(targets: impl Iterator<Item = &'a Target>, room: u64) -> Op {
    let room = std::iter::once(Bytes::from(room.to_string()));
    Op::new("get", room.chain(targets.map(target::arg)).collect())
}

pub(crate) fn read(
    answer: &mut Reader<'_>,
    records: &mut Records,
    topic: &TopicName,
    target: &Target,
) -> Result<Result<JobView, Error>, Error> {
    Ok(read_view(answer, records, topic)?.unwrap_or_else(|| Err(no_job(target))))
}

/// A job as it is: `None` = it is not there, an error = it does not fit.
pub(crate) fn read_view(
    answer: &mut Reader<'_>,
    records: &mut Records,
    topic: &TopicName,
) -> Result<Option<Result<JobView, Error>>, Error> {
    match answer.u8()? {
        0 => return Ok(None),
        1 => {}
        2 => return Ok(Some(Err(does_not_fit(answer.id()?)))),
        _ => return Err(strange("a job is neither there nor not")),
    }
    let (state, due_at) = (target::known_state(answer.u8()?)?, answer.u48()?);
    let (lapsed, id) = (answer.u8()? == 1, answer.id()?);
    let happened = answer.short_bytes()?;
    let text = records.next()?;
    if text.is_empty() {
        // It went before a lost answer was asked for again.
        return Ok(None);
    }
    let (content, priority) = record::decode(&text)?;
    let progress = if happened.is_empty() {
        progress::fresh(u32::try_from(content.bytes()).unwrap_or(u32::MAX), priority)
    } else {
        progress::decode(happened, lapsed)?
    };
    let job = Job { id, content, progress };
    Ok(Some(Ok(JobView { topic: topic.clone(), state, due_at, job })))
}
