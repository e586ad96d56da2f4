//! A line of a log for programs that read it: one JSON object.

use clap::ValueEnum;
use serde::Serialize;

/// How a log is written to stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// For programs: each line is a JSON object
    Json,
}

/// The line. All fields are there in every line, so that a program can rely on them.
#[derive(Serialize)]
struct LogLine<'l, F> {
    ts: String,
    level: &'l str,
    target: &'l str,
    message: &'l str,
    fields: F,
}

/// A line with the time of now, without its line end.
///
/// JSON escapes control characters, so foreign text can neither break a line nor steer a terminal.
pub(crate) fn log_line(
    level: tracing::Level,
    target: &str,
    message: &str,
    fields: impl Serialize,
) -> String {
    let level = match level {
        tracing::Level::ERROR => "error",
        tracing::Level::WARN => "warn",
        tracing::Level::INFO => "info",
        tracing::Level::DEBUG => "debug",
        tracing::Level::TRACE => "trace",
    };
    let ts = format!("{:.3}", jiff::Timestamp::now());
    let line = LogLine { ts, level, target, message, fields };
    // Only maps with other keys than text cannot be written, and no caller has one.
    serde_json::to_string(&line).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_object_whatever_its_text() {
        let fields = serde_json::json!({ "n": 1 });
        let line = log_line(tracing::Level::WARN, "dormouse", "a \"b\"\n\x1b[2J", fields);
        assert!(!line.contains('\n') && !line.contains('\x1b'), "{line}");
        let mut read: serde_json::Value = serde_json::from_str(&line).unwrap();
        let ts = read.as_object_mut().unwrap().remove("ts").unwrap();
        let ts = ts.as_str().unwrap();
        assert!(ts.len() == "2027-01-01T00:00:00.000Z".len() && ts.ends_with('Z'), "{ts}");
        let expected = serde_json::json!({
            "level": "warn", "target": "dormouse",
            "message": "a \"b\"\n\x1b[2J", "fields": {"n": 1},
        });
        assert_eq!(read, expected);
    }
}
