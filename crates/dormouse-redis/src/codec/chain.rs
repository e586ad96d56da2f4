//! Encodes the arguments of the script verb `chain`. They depend on the topic's settings, so they
//! are made when the batch is encoded; the task of the chain decodes the reply.

use bytes::Bytes;
use dormouse_core::job::Token;
use dormouse_core::topic::Settings;

use super::put::{self, Limits, OwnPut};
use crate::wire::{Op, Writer, flag};

/// Where the records are among the arguments of a put, every third.
const RECORD_AT: usize = 3;
/// Of the records of a part that only looks, so many bytes are sent: the size of the job.
const SIZE_BYTES: usize = 4;

/// What a chain does in one partition.
#[derive(Clone, Debug)]
pub(crate) struct ChainPart {
    /// The job to ack, if this is its partition.
    pub(crate) token: Option<Token>,
    pub(crate) puts: Vec<OwnPut>,
    /// Nothing is changed: would all of it be done?
    pub(crate) only_look: bool,
}

pub(crate) fn op(part: &ChainPart, settings: &Settings, limits: Limits) -> Op {
    let mut to = Writer::default();
    if let Some(token) = part.token {
        to.id(token.id).u64(token.fence);
    }
    let mut args = vec![to.take(), Bytes::new(), flag(part.only_look)];
    let mut put_args = put::own_args(&part.puts, settings, limits);
    if part.only_look {
        let records = put_args.iter_mut().skip(RECORD_AT).step_by(3);
        records.for_each(|record| record.truncate(SIZE_BYTES));
    }
    args.extend(put_args);
    Op::new("chain", args)
}
