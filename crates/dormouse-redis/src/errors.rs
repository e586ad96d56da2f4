//! Errors of calls to Redis, as callers see them.

use dormouse_core::error::{Code, Error};
use dormouse_core::job::{JobId, State};

use crate::cluster::CallError;

impl From<CallError> for Error {
    fn from(error: CallError) -> Error {
        match &error {
            CallError::InDoubt(error) => Error::new(
                Code::Unconfirmed,
                format!(
                    "Redis did not reply, and then refused a script: {error}; the change has \
                     happened or never will: check before you send it again"
                ),
            ),
            CallError::Script { code, .. } if code == "OOM" => no_memory(),
            CallError::Script { .. } | CallError::Refused(_) => {
                Error::unavailable(format!("Redis refused a script: {error}"))
            }
        }
    }
}

/// Redis has no memory for more jobs.
pub(crate) fn no_memory() -> Error {
    Error::new(
        Code::Full,
        "Redis is at its maxmemory; everything but put still works, so try again when jobs are \
         done, or raise maxmemory",
    )
}

/// A change was made, but too few replicas confirmed it in time. `done` says what was made.
pub(crate) fn unconfirmed(done: &str, id: Option<JobId>) -> Error {
    let text = format!(
        "{done}, but too few replicas confirmed it in time: it may be lost with the primary; check \
         before you send it again"
    );
    let job = id.map(|id| (id, State::Ready));
    Error { code: Code::Unconfirmed, text: text.into(), job }
}
