//! A flight lands: what its script answered, before anybody is told.

use bytes::Bytes;
use dormouse_core::error::Error;
use redis::Value;

use super::Partition;
use super::batch::Flight;
use crate::cluster::Landed;
use crate::wire::config::Config;
use crate::wire::{Reader, strange};

/// What a script answered.
enum Answer {
    Done {
        now_ms: u64,
        answers: Bytes,
        records: Vec<Bytes>,
    },
    /// Another server changed the configuration.
    Stale(Config),
    /// Of the priorities to be given up only these can be.
    Busy(Vec<u32>),
    /// It was too long on its way, by this time.
    Again(u64),
}

/// What a flight brought.
pub(super) struct Cargo {
    pub(super) now_ms: u64,
    pub(super) answers: Bytes,
    pub(super) records: Vec<Bytes>,
    /// As many replicas have it as promised.
    pub(super) confirmed: bool,
}

/// What became of a script that was answered.
pub(super) enum Touchdown {
    Done(Cargo),
    /// Nothing was done, the flight must go again.
    Again,
    /// The same; of the priorities to be given up only these can be.
    Busy(Vec<u32>),
    /// The same, and Redis knows nothing of what the partition was before, but this.
    Lost(Config),
}

/// A flight that has landed; nobody on board has been answered yet.
pub(super) struct Arrival {
    pub(super) flight: Flight,
    pub(super) cargo: Cargo,
    /// It was sent more than once, so it may have been done long before it landed.
    pub(super) is_repeated: bool,
    /// Another was in the air at the same time.
    pub(super) had_company: bool,
}

impl Arrival {
    /// Whether somebody on board waits, so that it may be in line again for the next flight.
    pub(super) fn has_waiters(&self) -> bool {
        self.flight.has_waiters()
    }
}

impl Partition {
    /// Takes in what a script answered.
    pub(super) fn land(&self, landed: Landed, config: Option<Config>) -> Result<Touchdown, Error> {
        let (now_ms, answers, records) = match parse(landed.value)? {
            Answer::Stale(config) => {
                // Once there is a configuration it stays for ever.
                if config.version == 0 && self.config.borrow().version != 0 {
                    return Ok(Touchdown::Lost(config));
                }
                *self.config.borrow_mut() = config;
                return Ok(Touchdown::Again);
            }
            Answer::Busy(free) => return Ok(Touchdown::Busy(free)),
            Answer::Again(now_ms) => {
                self.shared.clock.learn(now_ms, landed.sent_at, landed.landed_at);
                return Ok(Touchdown::Again);
            }
            Answer::Done { now_ms, answers, records } => (now_ms, answers, records),
        };
        self.shared.clock.learn(now_ms, landed.sent_at, landed.landed_at);
        if let Some(config) = config {
            *self.config.borrow_mut() = config;
        }
        // A script that needed no clock tells no time.
        let now_ms = match self.shared.clock.told() {
            None if now_ms > 0 => now_ms,
            _ => self.shared.clock.now_ms(),
        };
        let confirmed = landed.replicas >= u64::from(self.shared.replicas);
        Ok(Touchdown::Done(Cargo { now_ms, answers, records, confirmed }))
    }
}

fn parse(value: Value) -> Result<Answer, Error> {
    let Value::Array(items) = value else { return Err(strange("it is no list")) };
    let mut items = items.into_iter();
    let word = bytes(items.next())?;
    match &word[..] {
        b"done" => {
            let now_ms = number(items.next())?;
            let answers = bytes(items.next())?;
            let records = items.map(|item| bytes(Some(item))).collect::<Result<_, _>>()?;
            Ok(Answer::Done { now_ms, answers, records })
        }
        b"stale" => {
            let version = bytes(items.next())?;
            let version = std::str::from_utf8(&version).ok().and_then(|text| text.parse().ok());
            let version = version.ok_or_else(|| strange("a version is no number"))?;
            Config::decode(version, &bytes(items.next())?).map(Answer::Stale)
        }
        b"busy" => {
            let text = bytes(items.next())?;
            let mut from = Reader::new(&text);
            let mut free = Vec::new();
            while !from.is_empty() {
                free.push(from.u32()?);
            }
            Ok(Answer::Busy(free))
        }
        b"again" => Ok(Answer::Again(number(items.next())?)),
        _ => Err(strange("it is neither done nor stale")),
    }
}

fn bytes(value: Option<Value>) -> Result<Bytes, Error> {
    match value {
        Some(Value::BulkString(bytes)) => Ok(Bytes::from(bytes)),
        Some(Value::SimpleString(text)) => Ok(Bytes::from(text)),
        Some(Value::Nil) => Ok(Bytes::new()),
        _ => Err(strange("a text is missing")),
    }
}

fn number(value: Option<Value>) -> Result<u64, Error> {
    match value {
        Some(Value::Int(number)) => Ok(u64::try_from(number).unwrap_or(0)),
        _ => Err(strange("a number is missing")),
    }
}
