//! The events that a child records: one JSON document per line.
//!
//! A call is recorded before it is submitted and again after its answer. An event recorded before
//! the kill is in the pipe, so an answered call counts as answered, and one without an answer may
//! or may not have happened.

use dormouse_core::op::OnConflict;
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// The process is about to open the store.
    Opening,
    /// All jobs there are, found in one step.
    Dump {
        /// The jobs.
        jobs: Vec<Dumped>,
        /// The counts of the same instant: waiting, leased and dead.
        counts: [u64; 3],
    },
    /// A call is about to be made.
    Asked {
        /// Names the call within the process.
        call: u64,
        /// The wall clock before.
        at_us: u64,
        /// The call.
        ask: Ask,
    },
    /// A call was answered.
    Told {
        /// Which.
        call: u64,
        /// The wall clock after.
        at_us: u64,
        /// The answer.
        answer: Answer,
    },
    /// The drain found nothing more.
    Drained,
    /// The store stopped by itself, which it must not.
    Failed(String),
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// Add a job.
    Put(PutAsk),
    /// Take jobs of all topics.
    Reserve {
        /// Most jobs to take.
        max: usize,
        /// How long to wait.
        wait_ms: i64,
    },
    /// Something with a token.
    Token {
        /// What.
        verb: Verb,
        /// The token.
        token: (u64, u64),
        /// The token was made up.
        forged: bool,
        /// The delay of a nack.
        delay_ms: Option<i64>,
    },
    /// Remove a job by id.
    CancelId(u64),
    /// Remove a job by key.
    CancelKey {
        /// Where.
        topic: String,
        /// The key.
        key: String,
    },
    /// Move a job's due time.
    Reschedule {
        /// Which.
        id: u64,
        /// By how much.
        delay_ms: i64,
    },
}

/// The verbs that take a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verb {
    /// Done.
    Ack,
    /// Failed.
    Nack,
    /// Given back.
    Release,
    /// Prolonged.
    Extend,
}

/// A job to add; its body is made from its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutAsk {
    /// Unique over all processes.
    pub number: u64,
    /// Where.
    pub topic: String,
    /// The producer's id.
    pub key: Option<String>,
    /// The mode if the key is taken.
    pub mode: Mode,
    /// How long the key stays taken after the ack.
    pub key_ttl_ms: i64,
    /// Delay.
    pub delay_ms: Option<i64>,
    /// Due at.
    pub at_ms: Option<i64>,
    /// Lease time.
    pub ttr_ms: i64,
    /// Attempts before dead.
    pub attempts_max: u32,
    /// Lower is first.
    pub priority: u32,
}

/// `OnConflict` as it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Answer the existing job.
    Keep,
    /// Answer `conflict`.
    Reject,
    /// Replace what rests.
    Replace,
    /// Replace by an earlier one.
    Earliest,
    /// Replace by a later one.
    Latest,
}

impl Mode {
    /// As the engine calls it.
    pub fn on_conflict(self) -> OnConflict {
        match self {
            Mode::Keep => OnConflict::Keep,
            Mode::Reject => OnConflict::Reject,
            Mode::Replace => OnConflict::Replace,
            Mode::Earliest => OnConflict::Earliest,
            Mode::Latest => OnConflict::Latest,
        }
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// A new job.
    Created(u64),
    /// The key's job stays.
    Duplicate(u64),
    /// The key's job has the new content.
    Replaced(u64),
    /// Jobs that were taken.
    Jobs(Vec<Taken>),
    /// It was done.
    Done,
    /// It was done, and the job is dead.
    Dead,
    /// The job is not there.
    Gone,
    /// This job was removed or moved.
    Changed(u64),
    /// An error, by its code.
    Refused(String),
    /// It may or may not have happened, or happen yet.
    Unknown,
}

/// A job in a consumer's hands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Which.
    pub id: u64,
    /// Of its token.
    pub fence: u64,
    /// From 1.
    pub attempt: u32,
    /// The lease's length.
    pub ttr_ms: u64,
    /// Where.
    pub topic: String,
    /// The producer's id.
    pub key: Option<String>,
    /// The put its body comes from; `None` = from none, the body is broken.
    pub number: Option<u64>,
}

/// A job as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dumped {
    /// Which.
    pub id: u64,
    /// Where.
    pub topic: String,
    /// The producer's id, unless it passed to another job.
    pub key: Option<String>,
    /// See [`Taken::number`].
    pub number: Option<u64>,
    /// Whether it is dead.
    pub dead: bool,
    /// The newest lease's.
    pub fence: u64,
}
