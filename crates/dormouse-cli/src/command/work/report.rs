//! How a job ended, as a line of the log that programs read.

use serde::Serialize;

use crate::job::Job;
use crate::log_line::log_line;
use crate::output;

/// The outcome of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// The command succeeded: acked.
    Done,
    /// It failed, and there will be another attempt.
    Retry,
    /// It failed on the last attempt.
    Dead,
    /// Its exit code said that the job must never be tried again.
    Killed,
    /// Given back, no attempt spent.
    Released,
    /// The lease was lost, or the server did not take the end of it.
    Lost,
}

/// The fields of the line about a job.
#[derive(Serialize)]
struct JobLine<'a> {
    topic: &'a str,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    attempt: u32,
    outcome: Verdict,
    duration_ms: u64,
    /// How the command ended, unless it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    /// The end of the command's stderr.
    #[serde(skip_serializing_if = "str::is_empty")]
    stderr: &'a str,
    /// When the next attempt is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<String>,
}

/// The server's answer to the end of a lease.
#[derive(Debug, Default, serde::Deserialize)]
pub(super) struct EndAnswer {
    pub(super) code: String,
    #[serde(default)]
    pub(super) due_at: Option<String>,
}

/// Writes the line to stderr.
pub(super) fn report(
    job: &Job,
    outcome: Verdict,
    error: Option<&str>,
    stderr: &str,
    duration: std::time::Duration,
    due_at: Option<String>,
) {
    let line = JobLine {
        topic: &job.topic,
        id: &job.id,
        key: job.key.as_deref(),
        attempt: job.attempt,
        outcome,
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        error,
        stderr,
        due_at,
    };
    let level = match outcome {
        Verdict::Done | Verdict::Released => tracing::Level::INFO,
        Verdict::Retry | Verdict::Dead | Verdict::Killed | Verdict::Lost => tracing::Level::WARN,
    };
    output::say_json(&log_line(level, "dormouse::work", "a job has ended", line));
}
