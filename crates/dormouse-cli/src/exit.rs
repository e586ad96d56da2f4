//! How a subcommand ends: exit codes that scripts can rely on, and one line that says why.

use std::process::ExitCode;

use crate::output;

/// Exit codes; 0 is success. They are stable: scripts depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Every error without an exit code of its own.
    Error = 1,
    /// Invalid arguments; clap uses the same.
    Usage = 2,
    /// No such job, topic or lock; no job to reserve.
    NotFound = 3,
    /// A job in another state, a taken key, a held lock, or a lost lease.
    Conflict = 4,
    /// The server cannot be reached, did not answer, or does not know whether the change was made.
    Unreachable = 5,
    /// Busy, full or unavailable: the same request may succeed later.
    Busy = 6,
}

impl Exit {
    /// The exit code for an error code of the server.
    pub(crate) fn of_code(code: &str) -> Exit {
        match code {
            "not_found" => Exit::NotFound,
            "conflict" | "lease_lost" => Exit::Conflict,
            "busy" | "full" | "unavailable" => Exit::Busy,
            "unconfirmed" => Exit::Unreachable,
            _ => Exit::Error,
        }
    }
}

/// Why a subcommand failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    status: u8,
    /// The server's error code, if the server refused the request.
    code: Option<String>,
    text: Option<String>,
}

impl Failure {
    /// An error with exit code 1.
    pub(crate) fn new(text: impl Into<String>) -> Failure {
        Failure::with(Exit::Error, text)
    }

    /// Invalid arguments.
    pub(crate) fn usage(text: impl Into<String>) -> Failure {
        Failure::with(Exit::Usage, text)
    }

    /// The server cannot be reached, or did not answer.
    pub(crate) fn unreachable(text: impl Into<String>) -> Failure {
        Failure::with(Exit::Unreachable, text)
    }

    /// An error with its exit code.
    pub(crate) fn with(exit: Exit, text: impl Into<String>) -> Failure {
        Failure { status: exit as u8, code: None, text: Some(text.into()) }
    }

    /// An error with the exit code of something else.
    pub(crate) fn with_status(status: u8, text: impl Into<String>) -> Failure {
        Failure { status, code: None, text: Some(text.into()) }
    }

    /// An error reply of the server.
    pub(crate) fn of_server(code: &str, detail: &str) -> Failure {
        Failure {
            status: Exit::of_code(code) as u8,
            code: Some(code.to_owned()),
            text: Some(format!("{code}: {detail}")),
        }
    }

    /// An exit code without a message.
    pub(crate) fn silent(status: u8) -> Failure {
        Failure { status, code: None, text: None }
    }

    /// The same, with the subject before its text.
    pub(crate) fn about(self, what: &str) -> Failure {
        let text = self.text.map(|text| format!("{what}: {text}"));
        Failure { text, ..self }
    }

    /// The server's error code.
    pub(crate) fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// The message, without the program's name.
    pub(crate) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// The exit code.
    #[cfg(test)]
    pub(crate) fn status(&self) -> u8 {
        self.status
    }

    /// Whether the server could not be reached.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.status == Exit::Unreachable as u8
    }

    /// Whether the same request may succeed later.
    pub(crate) fn is_retryable(&self) -> bool {
        self.is_unreachable()
            || self.status == Exit::Busy as u8
            || self.code() == Some("unconfirmed")
    }

    /// Writes it to stderr.
    pub(crate) fn report(&self) -> ExitCode {
        if let Some(text) = &self.text {
            output::say_at(tracing::Level::ERROR, text);
        }
        ExitCode::from(self.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_codes_have_stable_exit_codes() {
        let check = |code: &str, expected: u8| {
            assert_eq!(Failure::of_server(code, "why").status(), expected, "{code}");
        };
        check("not_found", 3);
        check("conflict", 4);
        check("lease_lost", 4);
        check("busy", 6);
        check("full", 6);
        check("unavailable", 6);
        check("invalid", 1);
        check("unauthorized", 1);
        check("unconfirmed", 5);
    }
}
