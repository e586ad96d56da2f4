//! Backoff: `{"fixed": "10s"}`, or `fixed:10s` in a query.

use std::sync::Arc;

use dormouse_core::backoff::Backoff;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{SpanMs, parse_span};

/// How long a job waits after a failed attempt.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schema(as = Backoff)]
pub enum BackoffForm {
    /// Always the same wait.
    Fixed(SpanMs),
    /// `base`, times `factor` after each attempt, at most `cap`.
    Exponential(ExponentialForm),
    /// One wait per attempt; the last one repeats.
    List(Vec<SpanMs>),
}

/// See [`BackoffForm`].
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Exponential)]
pub struct ExponentialForm {
    base: SpanMs,
    #[serde(default = "two")]
    #[schema(default = 2, minimum = 1, maximum = 4294967295u32)]
    factor: u32,
    cap: SpanMs,
}

fn two() -> u32 {
    2
}

impl BackoffForm {
    /// A negative span becomes one beyond every limit, so that the rules refuse it.
    pub fn into_backoff(self) -> Arc<Backoff> {
        let ms = |span: SpanMs| u64::try_from(span.0).unwrap_or(u64::MAX);
        Arc::new(match self {
            BackoffForm::Fixed(delay) => Backoff::Fixed { delay_ms: ms(delay) },
            BackoffForm::Exponential(form) => Backoff::Exponential {
                base_ms: ms(form.base),
                factor: form.factor,
                cap_ms: ms(form.cap),
            },
            BackoffForm::List(delays) => {
                Backoff::List { delays_ms: delays.into_iter().map(ms).collect() }
            }
        })
    }
}

/// Reads `fixed:10s`, `exponential:1s:2:10m` (base, factor, cap) or `list:1s,5s`.
pub fn parse_backoff(text: &str) -> Result<BackoffForm, String> {
    let span = |text: &str| parse_span(text.trim()).map(SpanMs);
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    match kind {
        "fixed" => Ok(BackoffForm::Fixed(span(rest)?)),
        "list" => Ok(BackoffForm::List(rest.split(',').map(span).collect::<Result<_, _>>()?)),
        "exponential" => {
            let mut parts = rest.split(':');
            let (base, factor, cap) = (parts.next(), parts.next(), parts.next());
            let (Some(base), Some(factor), Some(cap), None) = (base, factor, cap, parts.next())
            else {
                return Err(wrong(text));
            };
            let factor = factor.parse().map_err(|_| wrong(text))?;
            Ok(BackoffForm::Exponential(ExponentialForm {
                base: span(base)?,
                factor,
                cap: span(cap)?,
            }))
        }
        _ => Err(wrong(text)),
    }
}

fn wrong(text: &str) -> String {
    format!("{text:?} is not a backoff; write fixed:10s, exponential:1s:2:10m or list:1s,5s")
}

/// A backoff in a response, in ms.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = BackoffMs)]
pub(crate) enum BackoffOut {
    /// Always the same wait.
    Fixed(u64),
    /// Growing waits.
    Exponential {
        /// The first wait.
        base: u64,
        /// Growth per attempt.
        factor: u32,
        /// The longest wait.
        cap: u64,
    },
    /// One wait per attempt.
    List(Vec<u64>),
}

impl From<&Backoff> for BackoffOut {
    fn from(backoff: &Backoff) -> BackoffOut {
        match backoff {
            Backoff::Fixed { delay_ms } => BackoffOut::Fixed(*delay_ms),
            Backoff::Exponential { base_ms, factor, cap_ms } => {
                BackoffOut::Exponential { base: *base_ms, factor: *factor, cap: *cap_ms }
            }
            Backoff::List { delays_ms } => BackoffOut::List(delays_ms.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_json_say_the_same() {
        for (words, json) in [
            ("fixed:10s", r#"{"fixed":"10s"}"#),
            ("exponential:1s:3:10m", r#"{"exponential":{"base":"1s","factor":3,"cap":"10m"}}"#),
            ("list:1s,5s", r#"{"list":[1000,"5s"]}"#),
            ("list:1s, 5s", r#"{"list":[1000,"5s"]}"#),
        ] {
            let form: BackoffForm = serde_json::from_str(json).unwrap();
            let parsed = parse_backoff(words).unwrap();
            assert_eq!(form.into_backoff(), parsed.into_backoff());
        }
        for words in ["", "fixed", "fixed:", "exponential:1s", "exponential:1s:2:3:4", "linear:1"] {
            assert!(parse_backoff(words).is_err(), "{words}");
        }
    }
}
