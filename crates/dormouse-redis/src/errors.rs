//! Errors of calls to Redis, as callers see them.

use dormouse_core::error::{Code, Error};

use crate::cluster::CallError;

impl From<CallError> for Error {
    fn from(error: CallError) -> Error {
        match &error {
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
