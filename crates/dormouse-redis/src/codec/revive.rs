//! revive, in words of the script: given jobs, or the oldest dead of a partition.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::op::{Changed, Target};
use dormouse_core::refusal::not_dead;

use super::kick::Portion;
use super::target;
use crate::wire::{Op, Reader, strange};

pub(crate) fn op<'a>(targets: impl Iterator<Item = &'a Target>) -> Op {
    Op::new("revive", targets.map(target::arg).collect())
}

pub(crate) fn read(
    answer: &mut Reader<'_>,
    target: &Target,
) -> Result<Result<Changed, Error>, Error> {
    target::changed(answer, target, not_dead)
}

/// The oldest dead.
pub(crate) fn op_oldest(max: usize) -> Op {
    Op::new("revive_topic", vec![Bytes::from(max.to_string())])
}

pub(crate) fn read_oldest(answer: &mut Reader<'_>) -> Result<Portion, Error> {
    let (count, end, _priority) = (u64::from(answer.u32()?), answer.u8()?, answer.u32()?);
    match end {
        0 | 1 => Ok(Portion { count, more: end == 1 }),
        2 => Err(target::unknown_priority()),
        _ => Err(strange("a revive came to nothing known")),
    }
}
