//! One error for every operation and backend: a stable code, and a text that says what was wrong,
//! the limit, and the fix.

use std::borrow::Cow;
use std::fmt;

use crate::job::{JobId, State};

/// The stable codes; wire protocols map them and never invent others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The request is malformed or beyond a limit.
    Invalid,
    /// No access token, or one that is not known.
    Unauthorized,
    /// The access token does not allow this.
    Forbidden,
    /// No such job, topic or lock.
    NotFound,
    /// The job is in a state, or the key is taken, so that the request cannot be done.
    Conflict,
    /// The token's lease is over and another consumer has, or had, the job.
    LeaseLost,
    /// A body or a reply beyond the size limit.
    TooLarge,
    /// Too much at once; try again.
    Busy,
    /// No room for more jobs; everything but put goes on.
    Full,
    /// It may or may not have happened; the id names the job to ask for.
    Unconfirmed,
    /// The store has stopped.
    Unavailable,
}

impl Code {
    /// Every code, in the order of the enum.
    pub const ALL: [Code; 11] = [
        Code::Invalid,
        Code::Unauthorized,
        Code::Forbidden,
        Code::NotFound,
        Code::Conflict,
        Code::LeaseLost,
        Code::TooLarge,
        Code::Busy,
        Code::Full,
        Code::Unconfirmed,
        Code::Unavailable,
    ];

    /// The code's word on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Invalid => "invalid",
            Code::Unauthorized => "unauthorized",
            Code::Forbidden => "forbidden",
            Code::NotFound => "not_found",
            Code::Conflict => "conflict",
            Code::LeaseLost => "lease_lost",
            Code::TooLarge => "too_large",
            Code::Busy => "busy",
            Code::Full => "full",
            Code::Unconfirmed => "unconfirmed",
            Code::Unavailable => "unavailable",
        }
    }

    /// Whether the same request can succeed later without a change.
    pub fn is_retryable(self) -> bool {
        matches!(self, Code::Busy | Code::Full | Code::Unavailable)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why an operation was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {text}")]
pub struct Error {
    /// For programs.
    pub code: Code,
    /// For people.
    pub text: Cow<'static, str>,
    /// The job that stands in the way, and its state, where there is one.
    pub job: Option<(JobId, State)>,
}

impl Error {
    /// An error with this code and text.
    pub fn new(code: Code, text: impl Into<Cow<'static, str>>) -> Error {
        Error { code, text: text.into(), job: None }
    }

    /// A request that is malformed or beyond a limit.
    pub fn invalid(text: impl Into<Cow<'static, str>>) -> Error {
        Error::new(Code::Invalid, text)
    }

    /// No such job, topic or lock.
    pub fn not_found(text: impl Into<Cow<'static, str>>) -> Error {
        Error::new(Code::NotFound, text)
    }

    /// A job in the way.
    pub fn conflict(id: JobId, state: State, text: impl Into<Cow<'static, str>>) -> Error {
        Error { code: Code::Conflict, text: text.into(), job: Some((id, state)) }
    }

    /// A store that has stopped.
    pub fn unavailable(text: impl Into<Cow<'static, str>>) -> Error {
        Error::new(Code::Unavailable, text)
    }
}

/// Why a store has stopped: its files, or the protocol to it, are broken. This is no answer to a
/// request: the machine that reports it must not be used any more, and everybody who asks gets it
/// as `unavailable`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fatal(Cow<'static, str>);

impl Fatal {
    /// With a text that says what is broken.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Fatal {
        Fatal(text.into())
    }
}

impl From<Fatal> for Error {
    fn from(fatal: Fatal) -> Error {
        Error::unavailable(fatal.0)
    }
}
