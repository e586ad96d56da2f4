//! Spans, instants, backoffs and rates on the command line: read as the server reads them, sent in
//! ms.

use std::str::FromStr;
use std::time::Duration;

use dormouse_server::units::{parse_backoff, parse_instant, parse_rate, parse_span};
use serde_json::{Value, json};

/// A span: `30m`, `1h 30m`, `30d`, `PT30M`, or a number of ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(u64);

impl Span {
    pub(crate) fn from_ms(ms: u64) -> Span {
        Span(ms)
    }

    pub(crate) fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        let ms = parse_span(text.trim())?;
        u64::try_from(ms).map(Span).map_err(|_| "a span cannot be negative".to_owned())
    }
}

impl From<Span> for Value {
    fn from(span: Span) -> Value {
        span.0.into()
    }
}

/// An instant: RFC 3339, or ms since 1970 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At(pub(crate) i64);

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<At, String> {
        parse_instant(text).map(At)
    }
}

impl From<At> for Value {
    fn from(at: At) -> Value {
        at.0.into()
    }
}

/// A rate: `100/1m`, or `100/1m:burst=5`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate(dormouse_core::rate::Rate);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        parse_rate(text.trim()).map(Rate)
    }
}

impl From<Rate> for Value {
    fn from(Rate(rate): Rate) -> Value {
        json!({ "jobs": rate.jobs, "per": rate.per_ms, "burst": rate.burst })
    }
}

/// A backoff: `fixed:10s`, `exponential:1s:2:10m`, `list:1s,5s`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Backoff(Value);

impl From<Backoff> for Value {
    fn from(backoff: Backoff) -> Value {
        backoff.0
    }
}

impl FromStr for Backoff {
    type Err = String;

    fn from_str(text: &str) -> Result<Backoff, String> {
        let form = parse_backoff(text)?;
        if text.contains('-') {
            return Err("a span cannot be negative".to_owned());
        }
        serde_json::to_value(form).map(Backoff).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(text.parse::<Span>().ok().map(|span| span.0), expected, "{text}");
    }

    #[test]
    fn spans_are_read_as_the_server_reads_them() {
        check("30m", Some(1_800_000));
        check("1h 30m", Some(5_400_000));
        check("1h30m", Some(5_400_000));
        check("30d", Some(30 * 86_400_000));
        check("PT30M", Some(1_800_000));
        check("1500", Some(1_500));
        check("0s", Some(0));
        check("1us", Some(1));
    }

    #[test]
    fn other_texts_are_not_spans() {
        for text in ["", "soon", "-5s", "1mo", "1y", "99999999999999999999", "30 x"] {
            check(text, None);
        }
    }

    #[test]
    fn instants_need_an_offset() {
        let at = |text: &str| text.parse::<At>().ok().map(|at| at.0);
        assert_eq!(at("2027-01-01T09:00:00+01:00"), Some(1_798_790_400_000));
        assert_eq!(at("1798790400000"), Some(1_798_790_400_000));
        assert_eq!(at("1798790400"), None, "these are seconds");
        assert_eq!(at("2027-01-01T09:00:00"), None);
        assert_eq!(at("tomorrow"), None);
    }

    #[test]
    fn backoffs_have_three_shapes() {
        let backoff = |text: &str| text.parse::<Backoff>().ok().map(|backoff| backoff.0);
        assert_eq!(backoff("fixed:10s"), Some(json!({"fixed": 10_000})));
        assert_eq!(backoff("list:1s,5s"), Some(json!({"list": [1_000, 5_000]})));
        let exponential = json!({"exponential": {"base": 1_000, "factor": 2, "cap": 600_000}});
        assert_eq!(backoff("exponential:1s:2:10m"), Some(exponential));
        let spread = json!({"fixed": 10_000, "jitter": 0.2});
        assert_eq!(backoff("fixed:10s:jitter=0.2"), Some(spread));
        for text in ["", "10s", "fixed:", "fixed:1s:2s", "exponential:1s", "list:", "fixed:-1s"] {
            assert_eq!(backoff(text), None, "{text}");
        }
    }
}
