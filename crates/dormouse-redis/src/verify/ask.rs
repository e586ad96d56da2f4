//! Asking a script, and reading what it found.

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::error::Error;
use redis::Value;
use tokio::time::timeout;

use super::Tools;
use super::kind::Kind;
use crate::cluster::{Call, CallError, Script};
use crate::partition::{REPLY_TIMEOUT, timed_out};
use crate::wire::{Reader, malformed};

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The script failed here; elsewhere it may not.
    Script(String),
    /// Nothing can be asked any more.
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
                Error::unavailable(format!("Redis would not run a script: {text}"))
            }
            Failure::Fatal(error) => error,
        }
    }
}

/// What a script found wrong: what, whose, and more about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) kind: Kind,
    pub(super) subject: Bytes,
    pub(super) detail: Bytes,
}

/// The parts of an answer, one after the other.
#[derive(Debug)]
pub(super) struct Answer(std::vec::IntoIter<Value>);

impl Answer {
    pub(super) fn new(value: Value) -> Answer {
        let parts = match value {
            Value::Array(parts) => parts,
            other => vec![other],
        };
        Answer(parts.into_iter())
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

    pub(super) fn list(&mut self) -> Result<Answer, Error> {
        match self.0.next() {
            Some(Value::Array(parts)) => Ok(Answer(parts.into_iter())),
            _ => Err(malformed("a list is missing")),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    /// The next three parts; `None` at the end.
    pub(super) fn triple(&mut self) -> Result<Option<(Bytes, Bytes, Bytes)>, Error> {
        if self.is_over() {
            return Ok(None);
        }
        Ok(Some((self.text()?, self.text()?, self.text()?)))
    }

    /// The rest of the answer.
    pub(super) fn findings(&mut self) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        while let Some((name, subject, detail)) = self.triple()? {
            let kind =
                Kind::named(&name).ok_or_else(|| malformed("a problem has no known name"))?;
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
    ) -> Result<Answer, Failure> {
        let call = Call { slot, script: Arc::clone(script), keys, args, replicas: 0 };
        match timeout(REPLY_TIMEOUT, self.link.call(&call)).await {
            Ok(Ok(landed)) => Ok(Answer::new(landed.value)),
            Ok(Err(CallError::Script { code, text })) => {
                Err(Failure::Script(format!("{code} {text}")))
            }
            Ok(Err(error)) => Err(Failure::Fatal(error.into())),
            Err(_) => Err(Failure::Fatal(timed_out())),
        }
    }
}

pub(super) fn number(value: u64) -> Bytes {
    Bytes::from(value.to_string())
}
