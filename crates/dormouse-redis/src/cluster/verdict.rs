//! What to do about an error: most heal by trying again, some never.

use redis::{ErrorKind, RedisError, ServerError};

/// What a retry cannot heal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The script failed, or Redis would not run it: `code` is the first word of the reply.
    #[error("{code} {text}")]
    Script {
        /// `ERR`, `OOM`, `MISCONF` or what a script made up.
        code: String,
        /// The rest of the reply.
        text: String,
    },
    /// Redis does not let this user in, or not do this.
    #[error("Redis refuses: {0}")]
    Refused(String),
}

/// What to do with a call that was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The node does not know the script: teach it, then send again.
    Load,
    /// Another node has the slot, from now on.
    Moved(String),
    /// Another node has these keys, for this once.
    Ask(String),
    /// Send again after a pause.
    Retry,
    /// The node is no longer a primary: send again after a pause, on a new connection, as the name
    /// of a stand-alone server may lead elsewhere by now.
    Demoted,
    /// The map says that the slot has gone elsewhere: send again at once.
    Elsewhere,
    /// No use.
    Fatal(CallError),
}

impl Verdict {
    /// About an error a node replied with.
    pub(super) fn of_reply(error: &ServerError) -> Verdict {
        let details = error.details().unwrap_or_default();
        match error.code() {
            "NOSCRIPT" => Verdict::Load,
            "MOVED" => Verdict::redirected(details, Verdict::Moved),
            "ASK" => Verdict::redirected(details, Verdict::Ask),
            // UNBLOCKED: the node stopped being a primary while WAIT waited.
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

    /// About a request that got no reply, or a connection that was not opened.
    pub(super) fn of_failure(error: &RedisError) -> Verdict {
        match (error.kind(), error.code()) {
            (ErrorKind::AuthenticationFailed, _) | (_, Some("NOAUTH" | "WRONGPASS" | "NOPERM")) => {
                Verdict::Fatal(CallError::Refused(error.to_string()))
            }
            _ => Verdict::Retry,
        }
    }

    /// `slot host:port`, of which only the place is news.
    fn redirected(details: &str, make: fn(String) -> Verdict) -> Verdict {
        match details.split_ascii_whitespace().nth(1) {
            Some(place) => make(place.to_owned()),
            None => Verdict::Retry,
        }
    }
}

impl CallError {
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
    fn redirections_name_a_place() {
        assert_eq!(verdict("MOVED 3999 10.0.0.1:6381"), Verdict::Moved("10.0.0.1:6381".into()));
        assert_eq!(verdict("ASK 3999 :6381"), Verdict::Ask(":6381".into()));
    }

    #[test]
    fn passing_troubles_are_tried_again() {
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
    fn what_no_retry_heals_is_passed_on() {
        let script = CallError::Script { code: "OOM".into(), text: "command not allowed".into() };
        assert_eq!(verdict("OOM command not allowed"), Verdict::Fatal(script));
        for line in ["NOPERM no", "NOAUTH Authentication required.", "WRONGPASS invalid"] {
            assert!(matches!(verdict(line), Verdict::Fatal(CallError::Refused(_))), "{line}");
        }
    }
}
