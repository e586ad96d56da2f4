//! The byte formats that servers and scripts exchange: arguments, replies, records, progress.
//! Numbers are big-endian, as in the scripts' `struct` formats.

pub(crate) mod codes;
pub(crate) mod config;
pub(crate) mod flow;
pub(crate) mod progress;
mod reader;
pub(crate) mod record;
mod writer;

use bytes::Bytes;
use dormouse_core::error::Error;

pub(crate) use reader::Reader;
pub(crate) use writer::Writer;

/// One operation of a script batch.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) verb: &'static str,
    pub(crate) args: Vec<Bytes>,
    /// The priorities that it uses besides those of the jobs in the partition.
    pub(crate) priorities: Vec<u32>,
}

impl Op {
    pub(crate) fn new(verb: &'static str, args: Vec<Bytes>) -> Op {
        Op { verb, args, priorities: Vec::new() }
    }
}

/// A number as an argument.
pub(crate) fn number(value: u64) -> Bytes {
    Bytes::from(value.to_string())
}

/// A number as an argument; empty = not given.
pub(crate) fn optional(value: Option<u64>) -> Bytes {
    value.map_or_else(Bytes::new, number)
}

/// A flag as an argument; empty = not set.
pub(crate) fn flag(is_set: bool) -> Bytes {
    Bytes::from_static(if is_set { b"1" } else { b"" })
}

/// Priorities as an argument.
pub(crate) fn packed<'a>(priorities: impl IntoIterator<Item = &'a u32>) -> Bytes {
    let mut to = Writer::default();
    for &priority in priorities {
        to.u32(priority);
    }
    to.take()
}

/// The records in a script's reply, in the order of the verbs that returned them.
#[derive(Debug)]
pub(crate) struct Records(std::vec::IntoIter<Bytes>);

impl Records {
    pub(crate) fn new(records: Vec<Bytes>) -> Records {
        Records(records.into_iter())
    }

    pub(crate) fn none() -> Records {
        Records::new(Vec::new())
    }

    /// The next one. It is empty if the job was removed before a lost reply was requested again.
    pub(crate) fn next(&mut self) -> Result<Bytes, Error> {
        self.0.next().ok_or_else(|| malformed("it has fewer records than jobs"))
    }
}

/// A reply that no script of this version returns.
pub(crate) fn malformed(what: &str) -> Error {
    Error::unavailable(format!(
        "a script returned a malformed reply: {what}; do servers of different versions share this \
         Redis?"
    ))
}
