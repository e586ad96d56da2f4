//! reserve_id, in words of the script.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, State};
use dormouse_core::op::{LeasedJob, Target};
use dormouse_core::refusal::{no_job, reserve_leased};
use dormouse_core::topic::TopicName;

use super::reserve::read_jobs;
use super::target;
use crate::wire::{Op, Reader, Records, Writer, strange};

pub(crate) fn op(id: JobId, ttr_ms: Option<u64>) -> Op {
    let ttr = ttr_ms.map_or_else(Bytes::new, |ms| Bytes::from(ms.to_string()));
    Op::new("reserve_id", vec![Writer::default().id(id).take(), ttr])
}

pub(crate) fn read(
    answer: &mut Reader<'_>,
    records: &mut Records,
    topic: &TopicName,
    now_ms: u64,
    id: JobId,
) -> Result<Result<LeasedJob, Error>, Error> {
    let (outcome, was, _priority) = (answer.u8()?, answer.u8()?, answer.u32()?);
    Ok(match outcome {
        0 => {
            let job = read_jobs(answer, 1, records, topic, now_ms)?.pop();
            let mut job = job.ok_or_else(|| no_job(&Target::Id(id)));
            if let Ok(job) = &mut job
                && target::known_state(was)? == State::Dead
            {
                // What is dead cannot be late.
                job.late_ms = 0;
            }
            job
        }
        2 => Err(no_job(&Target::Id(id))),
        4 => Err(reserve_leased(id)),
        5 => return Err(target::unknown_priority()),
        _ => return Err(strange("a reserve of a job came to nothing known")),
    })
}
