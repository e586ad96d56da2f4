//! Encodes the arguments of the script verb `forecast` and decodes its reply.

use dormouse_core::error::Error;

use crate::wire::{Op, Reader, Writer};

/// Later than the due time of any job; fits into 48 bits.
const LAST_MS: u64 = (1 << 48) - 1;

/// Counts the jobs that become due in each step of `[from_ms, to_ms)`, which is not empty.
pub(crate) fn op(from_ms: u64, step_ms: u64, to_ms: u64) -> Op {
    let mut to = Writer::default();
    for ms in [from_ms, step_ms, to_ms] {
        to.u48(ms.min(LAST_MS));
    }
    Op::new("forecast", vec![to.take()])
}

/// The counts of the first steps, as many as one script call computes.
pub(crate) fn read(reply: &mut Reader<'_>) -> Result<Vec<u64>, Error> {
    let count = reply.u16()?;
    (0..count).map(|_| reply.u64()).collect()
}
