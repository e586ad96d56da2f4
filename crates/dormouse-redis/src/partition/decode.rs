//! Decodes the reply of a script as a whole; `deliver` reads the answers of its operations.
//!
//! A script answers with one of six words (see `lua/prologue.lua`): `done` with the answers,
//! `ticks` with the answers if schedules became due,
//! `stale` with the configuration that another server has set, `busy` with the priorities that can
//! be given up, `again` if the batch was delayed, `late` if its sequence has gone on without it.

use bytes::Bytes;
use dormouse_core::error::{Code, Error};
use redis::Value;

use super::Partition;
use crate::cluster::CallReply;
use crate::wire::config::Config;
use crate::wire::{Reader, malformed};

/// The reply of a script, parsed.
enum ParsedReply {
    Done {
        now_ms: u64,
        answers: Bytes,
        records: Vec<Bytes>,
        /// `ticks`: schedules became due.
        are_ticks_due: bool,
    },
    /// `stale`: another server changed the configuration.
    StaleConfig(Box<Config>),
    /// `busy`: of the priorities to give up, only these are unused.
    PrioritiesBusy(Vec<u32>),
    /// `again`: nothing was executed, because the batch expected another time than this.
    Expired(u64),
    /// `late`: a later batch of the sequence has been executed.
    Late,
}

/// The reply to a batch that was executed.
pub(super) struct ScriptReply {
    pub(super) now_ms: u64,
    pub(super) answers: Bytes,
    pub(super) records: Vec<Bytes>,
    /// Schedules of the partition became due.
    pub(super) are_ticks_due: bool,
    /// As many replicas have confirmed it as configured.
    pub(super) confirmed: bool,
}

/// What to do after the reply to a batch.
pub(super) enum BatchStatus {
    Done(ScriptReply),
    /// Nothing was executed: send it again.
    Retry,
    /// The same, giving up only these priorities.
    PrioritiesBusy(Vec<u32>),
    /// The same, after the topic is restored: Redis has lost the partition.
    DataLost,
    /// Servers use the partition with another shard: the topic was registered anew.
    Foreign,
}

impl Partition {
    /// Decodes a reply; takes over the clock and the configuration.
    pub(super) fn decode(
        &self,
        call: CallReply,
        config: Option<Config>,
    ) -> Result<BatchStatus, Error> {
        let (now_ms, answers, records, are_ticks_due) = match parse(call.value)? {
            ParsedReply::StaleConfig(config) => {
                let known_version = self.config.borrow().version;
                return Ok(match config.version {
                    // A configuration is never removed, so the data must be gone.
                    0 if known_version != 0 => BatchStatus::DataLost,
                    0 => BatchStatus::Retry,
                    _ if config.shard != 0 && config.shard != self.shard_no => BatchStatus::Foreign,
                    _ => {
                        *self.config.borrow_mut() = *config;
                        BatchStatus::Retry
                    }
                });
            }
            ParsedReply::PrioritiesBusy(free) => return Ok(BatchStatus::PrioritiesBusy(free)),
            ParsedReply::Expired(now_ms) => {
                self.shared.clock.observe(now_ms, call.sent_at, call.received_at);
                return Ok(BatchStatus::Retry);
            }
            // A batch is sent until it is answered, and only then the next of its sequence. So only
            // a copy on an abandoned connection is late, and no one reads the reply to that. If one
            // is read, this server's name is not unique, and the batch may have been executed.
            ParsedReply::Late => return Err(overtaken()),
            ParsedReply::Done { now_ms, answers, records, are_ticks_due } => {
                (now_ms, answers, records, are_ticks_due)
            }
        };
        self.shared.clock.observe(now_ms, call.sent_at, call.received_at);
        if let Some(config) = config {
            *self.config.borrow_mut() = config;
        }
        // A script that needed no clock reports 0.
        let now_ms = match self.shared.clock.override_ms() {
            None if now_ms > 0 => now_ms,
            _ => self.shared.clock.now_ms(),
        };
        let confirmed = call.replicas >= u64::from(self.shared.replicas);
        let reply = ScriptReply { now_ms, answers, records, are_ticks_due, confirmed };
        Ok(BatchStatus::Done(reply))
    }
}

fn overtaken() -> Error {
    let text = "a later batch was executed before this one: whether this one was executed is \
                unknown; check before you send it again";
    Error::new(Code::Unconfirmed, text)
}

fn parse(value: Value) -> Result<ParsedReply, Error> {
    let Value::Array(items) = value else { return Err(malformed("it is no list")) };
    let mut items = items.into_iter();
    let word = bytes(items.next())?;
    match &word[..] {
        b"done" | b"ticks" => {
            let now_ms = number(items.next())?;
            let answers = bytes(items.next())?;
            let records = items.map(|item| bytes(Some(item))).collect::<Result<_, _>>()?;
            let are_ticks_due = &word[..] == b"ticks";
            Ok(ParsedReply::Done { now_ms, answers, records, are_ticks_due })
        }
        b"stale" => {
            let version = bytes(items.next())?;
            let version = std::str::from_utf8(&version).ok().and_then(|text| text.parse().ok());
            let version = version.ok_or_else(|| malformed("a version is no number"))?;
            let config = Config::decode(version, &bytes(items.next())?)?;
            Ok(ParsedReply::StaleConfig(Box::new(config)))
        }
        b"busy" => {
            let text = bytes(items.next())?;
            let mut from = Reader::new(&text);
            let mut free = Vec::new();
            while !from.is_empty() {
                free.push(from.u32()?);
            }
            Ok(ParsedReply::PrioritiesBusy(free))
        }
        b"again" => Ok(ParsedReply::Expired(number(items.next())?)),
        b"late" => Ok(ParsedReply::Late),
        _ => Err(malformed("its first word is unknown")),
    }
}

fn bytes(value: Option<Value>) -> Result<Bytes, Error> {
    match value {
        Some(Value::BulkString(bytes)) => Ok(Bytes::from(bytes)),
        Some(Value::SimpleString(text)) => Ok(Bytes::from(text)),
        Some(Value::Nil) => Ok(Bytes::new()),
        _ => Err(malformed("a text is missing")),
    }
}

fn number(value: Option<Value>) -> Result<u64, Error> {
    match value {
        Some(Value::Int(number)) => Ok(u64::try_from(number).unwrap_or(0)),
        _ => Err(malformed("a number is missing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_script_is_understood() {
        let word = |word: &str| Value::BulkString(word.into());
        let parsed = |items: Vec<Value>| parse(Value::Array(items));
        let done = parsed(vec![word("done"), Value::Int(7), word("answers"), word("record")]);
        assert!(matches!(done, Ok(ParsedReply::Done { now_ms: 7, are_ticks_due: false, .. })));
        let ticks = parsed(vec![word("ticks"), Value::Int(7), word("answers")]);
        assert!(matches!(ticks, Ok(ParsedReply::Done { are_ticks_due: true, .. })));
        let stale = parsed(vec![word("stale"), word("0"), word("")]);
        assert!(matches!(stale, Ok(ParsedReply::StaleConfig(config)) if config.version == 0));
        let busy = parsed(vec![word("busy"), word("\0\0\0\x05")]);
        assert!(matches!(busy, Ok(ParsedReply::PrioritiesBusy(free)) if free == [5]));
        assert!(matches!(parsed(vec![word("again"), Value::Int(9)]), Ok(ParsedReply::Expired(9))));
        assert!(matches!(parsed(vec![word("late")]), Ok(ParsedReply::Late)));
        assert!(parsed(vec![word("other")]).is_err());
    }
}
