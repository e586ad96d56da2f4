//! stats, in words of the script.

use dormouse_core::error::Error;
use dormouse_core::image::Counts;

use crate::wire::{Op, Reader};

/// Counts of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) delayed: u64,
    pub(crate) ready: u64,
    /// Ready, with a priority below the default.
    pub(crate) urgent: u64,
    pub(crate) counts: Counts,
    /// Keys kept taken after an ack.
    pub(crate) holds: u64,
    /// Jobs in any state.
    pub(crate) jobs: u64,
    /// When what reserve would give next was due.
    pub(crate) oldest_ready_at: Option<u64>,
    /// 0 = not paused, `reserve::NEVER` = until resumed.
    pub(crate) paused_until: u64,
    /// Time has changed more than one script brings to order: dead jobs may still be too many.
    pub(crate) more: bool,
    /// Priorities that no waiting or leased job has.
    pub(crate) empty: Vec<u32>,
}

pub(crate) fn op() -> Op {
    Op::new("stats", Vec::new())
}

pub(crate) fn read(answer: &mut Reader<'_>) -> Result<Sums, Error> {
    let (delayed, ready, urgent) = (answer.u64()?, answer.u64()?, answer.u64()?);
    let (leased, dead, holds) = (answer.u64()?, answer.u64()?, answer.u64()?);
    let counts = Counts {
        waiting: delayed + ready,
        leased,
        dead,
        puts: answer.u64()?,
        reserves: answer.u64()?,
        acks: answer.u64()?,
        nacks: answer.u64()?,
        expiries: answer.u64()?,
        releases: answer.u64()?,
        kills: answer.u64()?,
        cancels: answer.u64()?,
        bytes: answer.u64()?,
    };
    let jobs = answer.u64()?;
    let (is_ready, due_at) = (answer.u8()? == 1, answer.u48()?);
    let (paused_until, more) = (answer.u48()?, answer.u8()? == 1);
    let empty = (0..answer.u8()?).map(|_| answer.u32()).collect::<Result<_, _>>()?;
    let oldest_ready_at = is_ready.then_some(due_at);
    Ok(Sums {
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
