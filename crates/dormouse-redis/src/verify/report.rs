//! What was found.

use std::fmt;

use dormouse_core::job::JobId;

use super::kind::{Kind, Of};

/// So many problems are told one by one; all are counted.
const TOLD_MAX: usize = 1_000;

/// What an installation holds, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Topics in the register.
    pub topics: u64,
    /// Partitions looked at, those of locks included.
    pub partitions: u64,
    /// Jobs that wait for their time.
    pub delayed: u64,
    /// Jobs that could be reserved.
    pub ready: u64,
    /// Jobs that somebody has.
    pub leased: u64,
    /// Dead jobs.
    pub dead: u64,
    /// Keys of jobs, held ones included.
    pub keys: u64,
    /// Keys held after an ack.
    pub holds: u64,
    /// Locks.
    pub locks: u64,
    /// Problems found.
    pub found: u64,
    /// Those that were mended, or had gone by themselves when they were to be.
    pub mended: u64,
    /// The first thousand problems.
    pub problems: Vec<Problem>,
    /// What could not be checked, and why.
    pub unchecked: Vec<String>,
}

impl VerifyReport {
    /// Whether nothing is wrong, or nothing any more.
    pub fn is_sound(&self) -> bool {
        self.found == self.mended
    }

    pub(super) fn add(&mut self, problem: Problem) {
        self.found += 1;
        self.mended += u64::from(problem.outcome != Outcome::Wrong);
        if self.problems.len() < TOLD_MAX {
            self.problems.push(problem);
        }
    }
}

/// What became of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is there.
    Wrong,
    /// It was mended.
    Mended,
    /// It was there, and had gone when it was to be mended.
    Gone,
}

impl Outcome {
    /// Its word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Wrong => "wrong",
            Outcome::Mended => "mended",
            Outcome::Gone => "gone",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub kind: Kind,
    /// The partition as its keys have it, `topic/0`; of the register, the topic.
    pub place: String,
    /// Whose: an id, a key, a field; may be empty.
    pub subject: String,
    /// More about it; may be empty.
    pub detail: String,
    /// What became of it.
    pub outcome: Outcome,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { kind, place, subject, detail, outcome } = self;
        let what = match kind.of {
            Of::Job => " job ",
            Of::Key => " key ",
            Of::Lock => " lock ",
            _ => " ",
        };
        write!(f, "{place}:")?;
        if !subject.is_empty() {
            write!(f, "{what}{subject}:")?;
        }
        write!(f, " {}", kind.text)?;
        if !detail.is_empty() {
            write!(f, " ({detail})")?;
        }
        write!(f, " [{}, {}]", kind.name, outcome.as_str())
    }
}

/// A subject for people: ids as numbers, everything else as text.
pub(super) fn written(of: Of, subject: &[u8]) -> String {
    match <[u8; 8]>::try_from(subject) {
        Ok(id) if of == Of::Job => JobId(u64::from_be_bytes(id)).to_string(),
        _ => subject.escape_ascii().to_string(),
    }
}
