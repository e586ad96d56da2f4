//! forecast, in words of the script.

use dormouse_core::error::Error;

use crate::wire::{Op, Reader, Writer};

/// Later than any job is due.
const LAST_MS: u64 = (1 << 48) - 1;

/// How many jobs come due in the steps of `[from_ms, to_ms)`, of which there is at least one.
pub(crate) fn op(from_ms: u64, step_ms: u64, to_ms: u64) -> Op {
    let mut to = Writer::default();
    for ms in [from_ms, step_ms, to_ms] {
        to.u48(ms.min(LAST_MS));
    }
    Op::new("forecast", vec![to.take()])
}

/// The first steps: as many as one script can do. None = all that are left are empty.
pub(crate) fn read(answer: &mut Reader<'_>) -> Result<Vec<u64>, Error> {
    let count = answer.u16()?;
    (0..count).map(|_| answer.u64()).collect()
}
