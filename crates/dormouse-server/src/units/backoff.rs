//! Backoff: `{"fixed": "10s"}`, or `fixed:10s` in a query; both with a jitter if one is given.

use std::sync::Arc;

use dormouse_core::backoff::{Backoff, Delays};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{SpanMs, parse_span};

/// How long a job waits after a failed attempt.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(untagged, try_from = "BackoffFields")]
#[schema(as = Backoff)]
pub enum BackoffForm {
    /// Always the same wait.
    Fixed(FixedForm),
    /// `base`, times `factor` after each attempt, at most `cap`.
    Exponential(ExponentialForm),
    /// One wait per attempt; the last one repeats.
    List(ListForm),
}

/// See [`BackoffForm`].
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FixedBackoff)]
pub struct FixedForm {
    fixed: SpanMs,
    /// The part of the wait that chance may take away.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(default = 0.0, minimum = 0.0, maximum = 1.0)]
    jitter: Option<f64>,
}

/// See [`BackoffForm`].
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ExponentialBackoff)]
pub struct ExponentialForm {
    exponential: GrowthForm,
    /// The part of a wait that chance may take away.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(default = 0.5, minimum = 0.0, maximum = 1.0)]
    jitter: Option<f64>,
}

/// See [`BackoffForm`].
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ListBackoff)]
pub struct ListForm {
    list: Vec<SpanMs>,
    /// The part of a wait that chance may take away.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(default = 0.0, minimum = 0.0, maximum = 1.0)]
    jitter: Option<f64>,
}

/// See [`ExponentialForm`].
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Exponential)]
pub(super) struct GrowthForm {
    base: SpanMs,
    #[serde(default = "two")]
    #[schema(default = 2, minimum = 1, maximum = 4294967295u32)]
    factor: u32,
    cap: SpanMs,
}

fn two() -> u32 {
    2
}

/// All fields of a backoff: read so, a wrong one is named in the error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BackoffFields {
    fixed: Option<SpanMs>,
    exponential: Option<GrowthForm>,
    list: Option<Vec<SpanMs>>,
    jitter: Option<f64>,
}

impl TryFrom<BackoffFields> for BackoffForm {
    type Error = &'static str;

    fn try_from(fields: BackoffFields) -> Result<BackoffForm, &'static str> {
        let BackoffFields { fixed, exponential, list, jitter } = fields;
        match (fixed, exponential, list) {
            (Some(fixed), None, None) => Ok(BackoffForm::Fixed(FixedForm { fixed, jitter })),
            (None, Some(exponential), None) => {
                Ok(BackoffForm::Exponential(ExponentialForm { exponential, jitter }))
            }
            (None, None, Some(list)) => Ok(BackoffForm::List(ListForm { list, jitter })),
            _ => Err("a backoff has one of fixed, exponential and list"),
        }
    }
}

impl BackoffForm {
    /// A span or jitter below 0 becomes one beyond every limit, so that the rules refuse it.
    pub fn into_backoff(self) -> Arc<Backoff> {
        let ms = |span: SpanMs| u64::try_from(span.0).unwrap_or(u64::MAX);
        let (delays, jitter) = match self {
            BackoffForm::Fixed(form) => (Delays::Fixed { delay_ms: ms(form.fixed) }, form.jitter),
            BackoffForm::Exponential(ExponentialForm { exponential: form, jitter }) => {
                let (base_ms, cap_ms) = (ms(form.base), ms(form.cap));
                (Delays::Exponential { base_ms, factor: form.factor, cap_ms }, jitter)
            }
            BackoffForm::List(form) => {
                let delays_ms = form.list.into_iter().map(ms).collect();
                (Delays::List { delays_ms }, form.jitter)
            }
        };
        let backoff = Backoff::from(delays);
        Arc::new(match jitter {
            Some(jitter) => backoff.with_jitter(jitter),
            None => backoff,
        })
    }
}

/// Reads `fixed:10s`, `exponential:1s:2:10m` (base, factor, cap) or `list:1s,5s`, each perhaps with
/// a `:jitter=0.2` behind.
pub fn parse_backoff(text: &str) -> Result<BackoffForm, String> {
    let span = |text: &str| parse_span(text.trim()).map(SpanMs);
    let (rule, jitter) = match text.split_once(":jitter=") {
        Some((rule, jitter)) => (rule, Some(jitter.parse().map_err(|_| wrong(text))?)),
        None => (text, None),
    };
    let (kind, rest) = rule.split_once(':').unwrap_or((rule, ""));
    match kind {
        "fixed" => Ok(BackoffForm::Fixed(FixedForm { fixed: span(rest)?, jitter })),
        "list" => {
            let list = rest.split(',').map(span).collect::<Result<_, _>>()?;
            Ok(BackoffForm::List(ListForm { list, jitter }))
        }
        "exponential" => {
            let mut parts = rest.split(':');
            let (base, factor, cap) = (parts.next(), parts.next(), parts.next());
            let (Some(base), Some(factor), Some(cap), None) = (base, factor, cap, parts.next())
            else {
                return Err(wrong(text));
            };
            let factor = factor.parse().map_err(|_| wrong(text))?;
            let exponential = GrowthForm { base: span(base)?, factor, cap: span(cap)? };
            Ok(BackoffForm::Exponential(ExponentialForm { exponential, jitter }))
        }
        _ => Err(wrong(text)),
    }
}

fn wrong(text: &str) -> String {
    format!(
        "{text:?} is not a backoff; write fixed:10s, exponential:1s:2:10m or list:1s,5s, and \
         perhaps :jitter=0.2 behind"
    )
}

/// A backoff as [`parse_backoff`] reads it, in ms; the jitter only if it is not the usual one.
pub(crate) fn backoff_words(backoff: &Backoff) -> String {
    let mut words = match &backoff.delays {
        Delays::Fixed { delay_ms } => format!("fixed:{delay_ms}"),
        Delays::Exponential { base_ms, factor, cap_ms } => {
            format!("exponential:{base_ms}:{factor}:{cap_ms}")
        }
        Delays::List { delays_ms } => {
            let delays: Vec<String> = delays_ms.iter().map(u64::to_string).collect();
            format!("list:{}", delays.join(","))
        }
    };
    if backoff.jitter_permille != backoff.delays.default_jitter_permille() {
        words.push_str(&format!(":jitter={}", backoff.jitter()));
    }
    words
}

/// A backoff in a response, in ms.
#[derive(Serialize, ToSchema)]
#[schema(as = BackoffMs)]
pub(crate) struct BackoffOut {
    #[serde(flatten)]
    delays: DelaysOut,
    /// The part of a wait that chance may take away.
    jitter: f64,
}

/// See [`BackoffOut`].
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DelaysMs)]
pub(crate) enum DelaysOut {
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
        let delays = match &backoff.delays {
            Delays::Fixed { delay_ms } => DelaysOut::Fixed(*delay_ms),
            Delays::Exponential { base_ms, factor, cap_ms } => {
                DelaysOut::Exponential { base: *base_ms, factor: *factor, cap: *cap_ms }
            }
            Delays::List { delays_ms } => DelaysOut::List(delays_ms.clone()),
        };
        BackoffOut { delays, jitter: backoff.jitter() }
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
            ("fixed:10s:jitter=0.2", r#"{"fixed":"10s","jitter":0.2}"#),
            ("list:1s,5s:jitter=1", r#"{"list":[1000,"5s"],"jitter":1}"#),
            (
                "exponential:1s:3:10m:jitter=0",
                r#"{"exponential":{"base":"1s","factor":3,"cap":"10m"},"jitter":0}"#,
            ),
        ] {
            let form: BackoffForm = serde_json::from_str(json).unwrap();
            let parsed = parse_backoff(words).unwrap();
            let backoff = form.into_backoff();
            assert_eq!(backoff, parsed.into_backoff());
            assert_eq!(parse_backoff(&backoff_words(&backoff)).unwrap().into_backoff(), backoff);
        }
        for words in [
            "fixed:1s:jitter=",
            "fixed:1s:jitter=much",
            "fixed:jitter=0.1",
            "",
            "fixed",
            "fixed:",
            "exponential:1s",
            "exponential:1s:2:3:4",
            "linear:1",
        ] {
            assert!(parse_backoff(words).is_err(), "{words}");
        }
    }
}
