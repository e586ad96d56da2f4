//! How servers and scripts talk: operations out, answers in, records and progress in between.
//! Numbers are big-endian, as in the scripts' `struct` formats.

pub(crate) mod config;
pub(crate) mod progress;
mod reader;
pub(crate) mod record;
mod writer;

use bytes::Bytes;
use dormouse_core::error::Error;

pub(crate) use reader::Reader;
pub(crate) use writer::Writer;

/// One operation of a flight: the verb and its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) verb: &'static str,
    pub(crate) args: Vec<Bytes>,
}

impl Op {
    pub(crate) fn new(verb: &'static str, args: Vec<Bytes>) -> Op {
        Op { verb, args }
    }
}

/// The records a script handed out, in the order its verbs did.
#[derive(Debug)]
pub(crate) struct Records(std::vec::IntoIter<Bytes>);

impl Records {
    pub(crate) fn new(records: Vec<Bytes>) -> Records {
        Records(records.into_iter())
    }

    /// No record.
    pub(crate) fn none() -> Records {
        Records::new(Vec::new())
    }

    /// The next one. It is empty if the job went before a lost answer was asked for again.
    pub(crate) fn next(&mut self) -> Result<Bytes, Error> {
        self.0.next().ok_or_else(|| strange("it has fewer records than jobs"))
    }
}

/// An answer that no script of this version gives.
pub(crate) fn strange(what: &str) -> Error {
    Error::unavailable(format!(
        "the answer of a script makes no sense: {what}; do servers of different versions share \
         this Redis?"
    ))
}
