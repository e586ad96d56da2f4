//! Encodes the arguments of the script verb `stats` and decodes its reply.

use dormouse_core::error::Error;
use dormouse_core::image::Counts;

use crate::wire::{Op, Reader};

/// The numbers of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionStats {
    pub(crate) delayed: u64,
    pub(crate) ready: u64,
    /// Ready, with a priority below the default.
    pub(crate) urgent: u64,
    pub(crate) counts: Counts,
    /// Keys kept taken after an ack.
    pub(crate) holds: u64,
    /// Jobs in any state.
    pub(crate) jobs: u64,
    /// The due time of the job that would be reserved next.
    pub(crate) oldest_ready_at: Option<u64>,
    /// 0 = not paused, `NEVER` = until resumed.
    pub(crate) paused_until: u64,
    /// One script call did not expire all dead jobs, so their number may be too high.
    pub(crate) more: bool,
    /// Priorities without a waiting or leased job.
    pub(crate) empty: Vec<u32>,
}

pub(crate) fn op() -> Op {
    Op::new("stats", Vec::new())
}

pub(crate) fn read(reply: &mut Reader<'_>) -> Result<PartitionStats, Error> {
    let (delayed, ready, urgent) = (reply.u64()?, reply.u64()?, reply.u64()?);
    let (leased, dead, holds) = (reply.u64()?, reply.u64()?, reply.u64()?);
    let counts = Counts {
        waiting: delayed + ready,
        leased,
        dead,
        puts: reply.u64()?,
        reserves: reply.u64()?,
        acks: reply.u64()?,
        nacks: reply.u64()?,
        expiries: reply.u64()?,
        releases: reply.u64()?,
        kills: reply.u64()?,
        cancels: reply.u64()?,
        bytes: reply.u64()?,
    };
    let jobs = reply.u64()?;
    let (is_ready, due_at) = (reply.u8()? == 1, reply.u48()?);
    let (paused_until, more) = (reply.u48()?, reply.u8()? == 1);
    let empty = (0..reply.u8()?).map(|_| reply.u32()).collect::<Result<_, _>>()?;
    let oldest_ready_at = is_ready.then_some(due_at);
    Ok(PartitionStats {
        delayed,
        ready,
        urgent,
        counts,
        holds,
        jobs,
        oldest_ready_at,
        paused_until,
        more,
        empty,
    })
}
