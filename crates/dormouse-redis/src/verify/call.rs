//! Calls a script, and decodes its reply.

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::error::Error;
use redis::Value;
use tokio::time::timeout;

use super::Tools;
use super::kind::Kind;
use crate::cluster::{Call, CallError, Script};
use crate::partition::timed_out;
use crate::scheduler::REPLY_TIMEOUT;
use crate::wire::{Reader, malformed};

/// Why there is no reply.
#[derive(Debug)]
pub(super) enum Failure {
    /// The script failed; on other partitions it may not.
    Script(String),
    /// Redis cannot be reached any more.
    Fatal(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Fatal(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        match failure {
            Failure::Script(text) => {
                Error::unavailable(format!("Redis refused to run a script: {text}"))
            }
            Failure::Fatal(error) => error,
        }
    }
}

/// A problem that a script found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) kind: Kind,
    pub(super) subject: Bytes,
    pub(super) detail: Bytes,
}

/// The parts of a reply, read in sequence.
#[derive(Debug)]
pub(super) struct ReplyParts(std::vec::IntoIter<Value>);

impl ReplyParts {
    pub(super) fn new(value: Value) -> ReplyParts {
        let parts = match value {
            Value::Array(parts) => parts,
            other => vec![other],
        };
        ReplyParts(parts.into_iter())
    }

    pub(super) fn text(&mut self) -> Result<Bytes, Error> {
        match self.0.next() {
            Some(Value::BulkString(text)) => Ok(Bytes::from(text)),
            Some(Value::SimpleString(text)) => Ok(Bytes::from(text)),
            Some(Value::Int(number)) => Ok(Bytes::from(number.to_string())),
            Some(Value::Nil) => Ok(Bytes::new()),
            _ => Err(malformed("a text is missing")),
        }
    }

    pub(super) fn number(&mut self) -> Result<u64, Error> {
        Reader::new(&self.text()?).u64()
    }

    pub(super) fn list(&mut self) -> Result<ReplyParts, Error> {
        match self.0.next() {
            Some(Value::Array(parts)) => Ok(ReplyParts(parts.into_iter())),
            _ => Err(malformed("a list is missing")),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    /// The next three parts; `None` at the end.
    pub(super) fn triple(&mut self) -> Result<Option<(Bytes, Bytes, Bytes)>, Error> {
        if self.is_empty() {
            return Ok(None);
        }
        Ok(Some((self.text()?, self.text()?, self.text()?)))
    }

    /// The rest of the reply, which consists of problems.
    pub(super) fn findings(&mut self) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        while let Some((name, subject, detail)) = self.triple()? {
            let kind =
                Kind::by_name(&name).ok_or_else(|| malformed("unknown name of a problem"))?;
            findings.push(Finding { kind, subject, detail });
        }
        Ok(findings)
    }
}

impl Tools {
    /// Runs a script on a slot.
    pub(super) async fn run(
        &self,
        slot: u16,
        script: &Arc<Script>,
        keys: Vec<Bytes>,
        args: Vec<Bytes>,
    ) -> Result<ReplyParts, Failure> {
        let call = Call { slot, script: Arc::clone(script), keys, args, replicas: 0 };
        match timeout(REPLY_TIMEOUT, self.client.call(&call)).await {
            Ok(Ok(reply)) => Ok(ReplyParts::new(reply.value)),
            // A mend may be done twice.
            Ok(Err(error)) => Err(match error.without_doubt() {
                CallError::Script { code, text } => Failure::Script(format!("{code} {text}")),
                error => Failure::Fatal(error.into()),
            }),
            Err(_) => Err(Failure::Fatal(timed_out(&self.client, slot))),
        }
    }
}
