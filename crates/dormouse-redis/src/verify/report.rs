//! The report.

use std::fmt;

use dormouse_core::job::JobId;

use super::kind::{Kind, Scope};

/// Problems listed one by one; all are counted.
const PROBLEMS_MAX: usize = 1_000;

/// The contents of an installation, and its problems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Topics in the register.
    pub topics: u64,
    /// Partitions checked, those of locks included.
    pub partitions: u64,
    /// Jobs that are not due yet.
    pub delayed: u64,
    /// Jobs that can be reserved.
    pub ready: u64,
    /// Jobs under a lease.
    pub leased: u64,
    /// Dead jobs.
    pub dead: u64,
    /// Keys of jobs, held ones included.
    pub keys: u64,
    /// Keys held after an ack.
    pub holds: u64,
    /// Locks held, expired ones included.
    pub locks: u64,
    /// Problems found.
    pub found: u64,
    /// Problems that were mended, or had gone when they were to be mended.
    pub mended: u64,
    /// The first thousand problems.
    pub problems: Vec<Problem>,
    /// Checks that could not be made, and why.
    pub unchecked: Vec<String>,
}

impl VerifyReport {
    /// Whether no problem is left.
    pub fn is_sound(&self) -> bool {
        self.found == self.mended
    }

    pub(super) fn add(&mut self, problem: Problem) {
        self.found += 1;
        self.mended += u64::from(problem.outcome != ProblemStatus::Wrong);
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }
}

/// Whether a problem was mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemStatus {
    /// It is still there.
    Wrong,
    /// It was mended.
    Mended,
    /// It had gone when it was to be mended.
    Gone,
}

impl ProblemStatus {
    /// The word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            ProblemStatus::Wrong => "wrong",
            ProblemStatus::Mended => "mended",
            ProblemStatus::Gone => "gone",
        }
    }
}

/// One problem of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind of problem.
    pub kind: Kind,
    /// The partition as in its keys, `topic/0`; for the register, the topic.
    pub place: String,
    /// The id, key or lock concerned; may be empty.
    pub subject: String,
    /// Details; may be empty.
    pub detail: String,
    /// Whether it was mended.
    pub outcome: ProblemStatus,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { kind, place, subject, detail, outcome } = self;
        let what = match kind.scope {
            Scope::Job => " job ",
            Scope::Key => " key ",
            Scope::Group => " group entry ",
            Scope::Lock => " lock ",
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

/// The subject in reports: ids as numbers, everything else as escaped text.
pub(super) fn display_subject(scope: Scope, subject: &[u8]) -> String {
    match <[u8; 8]>::try_from(subject) {
        Ok(id) if scope == Scope::Job => JobId(u64::from_be_bytes(id)).to_string(),
        _ => subject.escape_ascii().to_string(),
    }
}
