//! Encodes the arguments of the script verb `pause`, which also resumes. Its reply is empty.

use bytes::Bytes;

use crate::wire::{Op, number};

/// Without `for_ms`, until resumed.
pub(crate) fn op(for_ms: Option<u64>) -> Op {
    let until = for_ms.map_or(Bytes::from_static(b"i"), number);
    Op::new("pause", vec![until])
}

pub(crate) fn op_resume() -> Op {
    Op::new("pause", vec![Bytes::new()])
}
