//! What to do about the error of an attempt: most are cured by a retry, some never.

use redis::{ErrorKind, RedisError, ServerError};

/// An error that a retry does not cure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The script failed, or Redis refused to run it. `code` is the first word of the reply.
    #[error("{code} {text}")]
    Script {
        /// `ERR`, `OOM`, `MISCONF` or a script's own.
        code: String,
        /// The rest of the reply.
        text: String,
    },
    /// The user may not connect or may not do this.
    #[error("Redis refuses: {0}")]
    Refused(String),
    /// Either, after the script was sent before without a reply: it may have been executed.
    #[error("{0}")]
    InDoubt(Box<CallError>),
}

/// What to do with a call after a failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The node does not have the script: load it, then send again.
    Load,
    /// Another node has the slot, from now on.
    Moved(String),
    /// Another node has these keys, for this attempt.
    Ask(String),
    /// Send again after a delay.
    Retry,
    /// The same, but the reply was lost: it may have been executed.
    Lost,
    /// The node is no longer a primary: send again after a delay, on a new connection, since the
    /// name of a stand-alone server may lead elsewhere by now.
    Demoted,
    /// By the slot map the slot has moved: send again at once.
    Elsewhere,
    /// A retry is of no use.
    Fatal(CallError),
}

impl Verdict {
    /// For an error reply.
    pub(super) fn of_reply(error: &ServerError) -> Verdict {
        let details = error.details().unwrap_or_default();
        match error.code() {
            "NOSCRIPT" => Verdict::Load,
            "MOVED" => Verdict::redirected(details, Verdict::Moved),
            "ASK" => Verdict::redirected(details, Verdict::Ask),
            // UNBLOCKED: the node was demoted during WAIT.
            "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "BUSY" | "UNBLOCKED" => {
                Verdict::Retry
            }
            "READONLY" => Verdict::Demoted,
            "NOAUTH" | "WRONGPASS" | "NOPERM" => Verdict::Fatal(CallError::refused(error)),
            code => Verdict::Fatal(CallError::Script {
                code: code.to_owned(),
                text: details.to_owned(),
            }),
        }
    }

    /// For a connection that was not opened.
    pub(super) fn of_failure(error: &RedisError) -> Verdict {
        match (error.kind(), error.code()) {
            (ErrorKind::AuthenticationFailed, _) | (_, Some("NOAUTH" | "WRONGPASS" | "NOPERM")) => {
                Verdict::Fatal(CallError::Refused(error.to_string()))
            }
            _ => Verdict::Retry,
        }
    }

    /// Reads `slot host:port`.
    fn redirected(details: &str, make: fn(String) -> Verdict) -> Verdict {
        match details.split_ascii_whitespace().nth(1) {
            Some(place) => make(place.to_owned()),
            None => Verdict::Retry,
        }
    }
}

impl CallError {
    /// The error without the doubt, where it does not matter whether the script was executed.
    pub(crate) fn without_doubt(self) -> CallError {
        match self {
            CallError::InDoubt(error) => *error,
            error => error,
        }
    }

    /// The same error of a script that may have been executed.
    pub(super) fn in_doubt(self) -> CallError {
        match self {
            CallError::InDoubt(_) => self,
            error => CallError::InDoubt(Box::new(error)),
        }
    }

    fn refused(error: &ServerError) -> CallError {
        CallError::Refused(format!("{} {}", error.code(), error.details().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(line: &str) -> Verdict {
        match redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap() {
            redis::Value::ServerError(error) => Verdict::of_reply(&error),
            value => panic!("{value:?} is no error"),
        }
    }

    #[test]
    fn redirections_give_an_address() {
        assert_eq!(verdict("MOVED 3999 10.0.0.1:6381"), Verdict::Moved("10.0.0.1:6381".into()));
        assert_eq!(verdict("ASK 3999 :6381"), Verdict::Ask(":6381".into()));
    }

    #[test]
    fn transient_errors_are_retried() {
        for line in [
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "CLUSTERDOWN The cluster is down",
            "LOADING Redis is loading the dataset in memory",
            "MASTERDOWN Link with MASTER is down",
            "BUSY Redis is busy running a script.",
            "UNBLOCKED force unblock from blocking operation",
        ] {
            assert_eq!(verdict(line), Verdict::Retry, "{line}");
        }
        let readonly = "READONLY You can't write against a read only replica.";
        assert_eq!(verdict(readonly), Verdict::Demoted);
        assert_eq!(verdict("NOSCRIPT No matching script."), Verdict::Load);
    }

    #[test]
    fn fatal_errors_are_returned() {
        let script = CallError::Script { code: "OOM".into(), text: "command not allowed".into() };
        assert_eq!(verdict("OOM command not allowed"), Verdict::Fatal(script));
        for line in ["NOPERM no", "NOAUTH Authentication required.", "WRONGPASS invalid"] {
            assert!(matches!(verdict(line), Verdict::Fatal(CallError::Refused(_))), "{line}");
        }
    }
}
