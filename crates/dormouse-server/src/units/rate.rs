//! Rates: `100/1m`, perhaps with a burst behind, or `{"jobs": 100, "per": "1m", "burst": 5}`.

use std::borrow::Cow;
use std::fmt;

use dormouse_core::rate::Rate;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::SpanMs;

/// A rate that a client sent, in one of its two forms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateForm(pub(crate) Rate);

/// So many jobs in so much time.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RateFields)]
struct RateFields {
    /// How many jobs; a million per second at most.
    #[schema(minimum = 1)]
    jobs: u64,
    /// In how much time; a day at most.
    per: SpanMs,
    /// How many may come at once after a rest.
    #[serde(default = "one")]
    #[schema(default = 1, minimum = 1, maximum = 1_000_000)]
    burst: u64,
}

fn one() -> u64 {
    1
}

struct RateVisitor;

impl<'de> Visitor<'de> for RateVisitor {
    type Value = Rate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rate like \"100/1m\" or {\"jobs\": 100, \"per\": \"1m\"}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Rate, E> {
        parse_rate(text).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Rate, A::Error> {
        let RateFields { jobs, per, burst } =
            RateFields::deserialize(MapAccessDeserializer::new(map))?;
        // A negative span becomes one beyond every limit, so that the rules refuse it.
        Ok(Rate { jobs, per_ms: u64::try_from(per.0).unwrap_or(u64::MAX), burst })
    }
}

impl<'de> Deserialize<'de> for RateForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RateForm, D::Error> {
        deserializer.deserialize_any(RateVisitor).map(RateForm)
    }
}

impl PartialSchema for RateForm {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[0-9]+/[0-9]*(ms|s|m|h|d)(:burst=[0-9]+)?$"))
            .examples(["100/1m"]);
        OneOfBuilder::new()
            .item(text)
            .item(Ref::from_schema_name(RateFields::name()))
            .description(Some("How fast jobs are taken: jobs per span, and a burst"))
            .into()
    }
}

impl ToSchema for RateForm {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Rate")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((RateFields::name().into_owned(), RateFields::schema()));
        RateFields::schemas(schemas);
    }
}

/// Reads `100/1m`, perhaps with a `:burst=5` behind.
pub fn parse_rate(text: &str) -> Result<Rate, String> {
    let (rate, burst) = match text.split_once(":burst=") {
        Some((rate, burst)) => (rate, Some(burst)),
        None => (text, None),
    };
    let rate: Rate = rate.parse().map_err(|error: dormouse_core::error::Error| {
        format!("{}, and perhaps :burst=5 behind", error.text)
    })?;
    let Some(burst) = burst else { return Ok(rate) };
    let is_number = !burst.is_empty() && burst.bytes().all(|byte| byte.is_ascii_digit());
    let jobs = burst.parse().ok().filter(|_| is_number).ok_or_else(|| {
        let shown: String = burst.chars().take(64).collect();
        format!("the burst {shown:?} is no number; write 100/1m:burst=5")
    })?;
    Ok(Rate { burst: jobs, ..rate })
}

/// A rate as [`parse_rate`] reads it; the burst only if it is not the usual one.
pub(crate) fn rate_words(rate: Rate) -> String {
    if rate.burst == one() { rate.to_string() } else { format!("{rate}:burst={}", rate.burst) }
}

/// A rate in a response, with its span in ms.
#[derive(Serialize, ToSchema)]
#[schema(as = RateMs)]
pub(crate) struct RateOut {
    /// How many jobs.
    jobs: u64,
    /// In how many ms.
    per: u64,
    /// How many may come at once after a rest.
    burst: u64,
}

impl From<Rate> for RateOut {
    fn from(rate: Rate) -> RateOut {
        RateOut { jobs: rate.jobs, per: rate.per_ms, burst: rate.burst }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &str, json: &str, expected: (u64, u64, u64)) {
        let RateForm(rate) = serde_json::from_str(json).unwrap();
        assert_eq!((rate.jobs, rate.per_ms, rate.burst), expected, "{json}");
        assert_eq!(parse_rate(words), Ok(rate), "{words}");
        let RateForm(quoted) = serde_json::from_str(&format!("{words:?}")).unwrap();
        assert_eq!(quoted, rate);
        assert_eq!(parse_rate(&rate_words(rate)), Ok(rate));
        let shown = serde_json::to_string(&RateOut::from(rate)).unwrap();
        assert_eq!(serde_json::from_str::<RateForm>(&shown).unwrap().0, rate, "{shown}");
    }

    #[test]
    fn words_and_json_say_the_same() {
        check("100/1m", r#"{"jobs": 100, "per": "1m"}"#, (100, 60_000, 1));
        check("5/s", r#"{"jobs": 5, "per": 1000, "burst": 1}"#, (5, 1_000, 1));
        check("7/90s:burst=20", r#"{"jobs": 7, "per": "1m 30s", "burst": 20}"#, (7, 90_000, 20));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (json, words) in [
            (r#""fast""#, "write 100/1m"),
            (r#""5/s:burst=""#, "burst=5"),
            (r#""5/s:burst=+1""#, "burst=5"),
            (r#""5/s:burst=99999999999999999999""#, "burst=5"),
            ("5", "100/1m"),
            ("[]", "100/1m"),
            (r#"{"per": "1m"}"#, "missing field `jobs`"),
            (r#"{"jobs": 1}"#, "missing field `per`"),
            (r#"{"jobs": 1, "per": "1m", "size": 1}"#, "unknown field `size`"),
            (r#"{"jobs": -1, "per": "1m"}"#, "-1"),
            (r#"{"jobs": 1, "per": "soon"}"#, "is not a span"),
        ] {
            let error = serde_json::from_str::<RateForm>(json).unwrap_err().to_string();
            assert!(error.contains(words), "{json}: {error}");
        }
    }
}
