//! Spans, instants and backoffs as they are written on the command line.

use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

const NS_PER_MS: i128 = 1_000_000;

/// A span: `30m`, `1h 30m`, `30d`, `PT30M`, or a number of ms. Goes out in ms.
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
        let wrong = |why: &str| format!("{why}; give for example 90s, 30m, 1h 30m, 30d or PT30M");
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(Span).map_err(|_| wrong("this is too long"));
        }
        let span: jiff::Span = text.parse().map_err(|_| wrong("this is no span of time"))?;
        if span.get_years() != 0 || span.get_months() != 0 {
            return Err(wrong("months and years vary in length, use days"));
        }
        if span.is_negative() {
            return Err(wrong("a span cannot be negative"));
        }
        let hours = (i128::from(span.get_weeks()) * 7 + i128::from(span.get_days())) * 24
            + i128::from(span.get_hours());
        let seconds =
            (hours * 60 + i128::from(span.get_minutes())) * 60 + i128::from(span.get_seconds());
        let us = (seconds * 1_000 + i128::from(span.get_milliseconds())) * 1_000
            + i128::from(span.get_microseconds());
        let ns = us * 1_000 + i128::from(span.get_nanoseconds());
        // Never early: what is no whole ms is rounded up.
        let ms = (ns + NS_PER_MS - 1) / NS_PER_MS;
        u64::try_from(ms).map(Span).map_err(|_| wrong("this is too long"))
    }
}

impl From<Span> for Value {
    fn from(span: Span) -> Value {
        span.0.into()
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

/// An instant: RFC 3339, or ms since 1970 UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At(String);

impl At {
    /// As a value of a query.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<At, String> {
        if text.parse::<u64>().is_ok() {
            return Ok(At(text.to_owned()));
        }
        let timestamp: jiff::Timestamp = text.parse().map_err(|_| {
            "this is no instant; give for example 2027-01-01T09:00:00+01:00, with its offset \
             from UTC or Z, or ms since 1970"
                .to_owned()
        })?;
        Ok(At(timestamp.to_string()))
    }
}

impl From<At> for Value {
    fn from(at: At) -> Value {
        at.0.parse::<u64>().map_or_else(|_| at.0.into(), Value::from)
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
        let wrong = || "give fixed:10s, exponential:1s:2:10m (base, factor, cap) or list:1s,5s";
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        let parts: Vec<&str> = rest.split(':').collect();
        let value = match (kind, parts.as_slice()) {
            ("fixed", [span]) => json!({"fixed": span.parse::<Span>()?}),
            ("list", [spans]) => {
                let spans = spans.split(',').map(str::parse);
                json!({"list": spans.collect::<Result<Vec<Span>, String>>()?})
            }
            ("exponential", [base, factor, cap]) => {
                let factor: f64 = factor.parse().map_err(|_| wrong())?;
                let factor = if factor.fract() == 0.0 && (0.0..1e9).contains(&factor) {
                    json!(factor as u64)
                } else {
                    json!(factor)
                };
                let (base, cap): (Span, Span) = (base.parse()?, cap.parse()?);
                json!({"exponential": {"base": base, "factor": factor, "cap": cap}})
            }
            _ => return Err(wrong().to_owned()),
        };
        Ok(Backoff(value))
    }
}

#[cfg(test)]
mod tests {
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
    fn what_is_no_span_is_refused() {
        for text in ["", "soon", "-5s", "1mo", "1y", "99999999999999999999", "30 x"] {
            check(text, None);
        }
    }

    #[test]
    fn instants_need_an_offset() {
        let at = |text: &str| text.parse::<At>().ok().map(|at| at.0);
        assert_eq!(at("2027-01-01T09:00:00+01:00").as_deref(), Some("2027-01-01T08:00:00Z"));
        assert_eq!(at("1798790400000").as_deref(), Some("1798790400000"));
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
        for text in ["", "10s", "fixed:", "fixed:1s:2s", "exponential:1s", "list:"] {
            assert_eq!(backoff(text), None, "{text}");
        }
    }
}
