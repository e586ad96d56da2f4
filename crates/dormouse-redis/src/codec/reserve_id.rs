//! Encodes the arguments of the script verb `reserve_id` and decodes its reply.

use dormouse_core::job::{JobId, State};
use dormouse_core::op::{LeasedJob, Target};
use dormouse_core::refusal::{job_done, no_job, reserve_leased};
use dormouse_core::topic::TopicName;

use super::reserve::read_jobs;
use super::{Hold, ItemResult, held_back, known_state, unknown_priority};
use crate::wire::flow::held_by;
use crate::wire::{Op, Reader, Records, Writer, codes, malformed, optional};

pub(crate) fn op(id: JobId, ttr_ms: Option<u64>) -> Op {
    Op::new("reserve_id", vec![Writer::default().id(id).take(), optional(ttr_ms)])
}

pub(crate) fn read(
    reply: &mut Reader<'_>,
    records: &mut Records,
    topic: &TopicName,
    now_ms: u64,
    id: JobId,
) -> ItemResult<LeasedJob> {
    let (code, was, _priority) = (reply.u8()?, reply.u8()?, reply.u32()?);
    Ok(match code {
        codes::DONE => {
            let job = read_jobs(reply, 1, records, topic, now_ms)?.pop();
            let mut job = job.ok_or_else(|| no_job(&Target::Id(id)));
            if let Ok(job) = &mut job
                && known_state(was)? == State::Dead
            {
                // A dead job has no due time to be late for.
                job.late_ms = 0;
            }
            job
        }
        codes::GONE if was == codes::ACKED => Err(job_done(id)),
        codes::GONE => Err(no_job(&Target::Id(id))),
        codes::CONFLICT => Err(reserve_leased(id)),
        codes::HELD_BACK => {
            let limit = held_by(reply.u8()?)?;
            let (leased, wait_ms) = (reply.u64()?, reply.u48()?);
            let hold = Hold { limit, group: reply.short_bytes()?, leased, wait_ms };
            Err(held_back(topic, &hold)?)
        }
        codes::UNKNOWN_PRIORITY => return Err(unknown_priority()),
        _ => return Err(malformed("unknown result of a reserve by id")),
    })
}
