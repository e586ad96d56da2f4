//! Time as people write it: spans like "30m", instants like "2027-01-01T09:00:00Z".

use std::borrow::Cow;
use std::fmt;

use jiff::{Span, SpanRelativeTo, Timestamp};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// A span that a client sent: "30m", "PT30M" or ms. Fractions of a ms are rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SpanMs(pub i64);

/// An instant that a client sent: RFC 3339 or ms since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstantMs(pub(crate) i64);

/// An instant in a response: RFC 3339, UTC, with ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At(pub(crate) u64);

/// Reads a span like `30m`, `1h 30m`, `30d`, `PT30M` or a number of ms, and returns ms. Fractions
/// of a ms are rounded up, so that nothing happens early. A span may be negative.
pub fn parse_span(text: &str) -> Result<i64, String> {
    if let Ok(ms) = text.parse() {
        return Ok(ms);
    }
    let wrong = || {
        let shown: String = text.chars().take(64).collect();
        format!("{shown:?} is not a span; write \"30m\", \"1h 30m\", \"30d\", \"PT30M\" or ms")
    };
    let span: Span = text.parse().map_err(|_| wrong())?;
    if span.get_years() != 0 || span.get_months() != 0 {
        return Err(format!("{} Months and years vary in length: give days.", wrong()));
    }
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    let up = i128::from(duration.subsec_nanos() % 1_000_000 > 0);
    i64::try_from(duration.as_millis() + up).map_err(|_| wrong())
}

/// The first instant that is read as a number: 10^12 ms are in September 2001. Below, somebody most
/// likely sends seconds, which would all be instants long past.
const INSTANT_NUMBER_MIN: i64 = 1_000_000_000_000;

/// An instant as a number. One below 0 is no time at all: that is for the rules to say.
fn instant_ms(ms: i64) -> Result<i64, String> {
    if (0..INSTANT_NUMBER_MIN).contains(&ms) {
        return Err(format!(
            "{ms} looks like seconds; write ms since 1970, which have 13 digits, or \
             \"2027-01-01T09:00:00Z\""
        ));
    }
    Ok(ms)
}

/// Reads an RFC 3339 instant or ms since 1970 UTC, and returns ms since 1970 UTC. Fractions of a ms
/// are rounded up.
pub fn parse_instant(text: &str) -> Result<i64, String> {
    if let Ok(ms) = text.parse() {
        return instant_ms(ms);
    }
    let instant: Timestamp = text.parse().map_err(|_| {
        let shown: String = text.chars().take(64).collect();
        format!("{shown:?} is not an instant; write \"2027-01-01T09:00:00+01:00\" or ms since 1970")
    })?;
    let up = i64::from(instant.subsec_nanosecond().rem_euclid(1_000_000) > 0);
    let floor = instant.as_nanosecond().div_euclid(1_000_000);
    Ok(i64::try_from(floor).unwrap_or(i64::MAX).saturating_add(up))
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instant =
            i64::try_from(self.0).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        // Only an instant beyond the year 9999 fails here, and the limits admit none.
        let instant = instant.unwrap_or(Timestamp::MAX);
        write!(f, "{instant:.3}")
    }
}

impl Serialize for At {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

struct TimeVisitor {
    parse: fn(&str) -> Result<i64, String>,
    number: fn(i64) -> Result<i64, String>,
    expecting: &'static str,
}

impl Visitor<'_> for TimeVisitor {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_i64<E: de::Error>(self, ms: i64) -> Result<i64, E> {
        (self.number)(ms).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, ms: u64) -> Result<i64, E> {
        let fits = i64::try_from(ms);
        self.visit_i64(fits.map_err(|_| E::custom(format!("{ms} is beyond every limit")))?)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<i64, E> {
        (self.parse)(text).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for SpanMs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SpanMs, D::Error> {
        let expecting = "a span like \"30m\" or ms";
        let visitor = TimeVisitor { parse: parse_span, number: Ok, expecting };
        deserializer.deserialize_any(visitor).map(SpanMs)
    }
}

impl<'de> Deserialize<'de> for InstantMs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<InstantMs, D::Error> {
        let expecting = "an RFC 3339 instant or ms since 1970";
        let visitor = TimeVisitor { parse: parse_instant, number: instant_ms, expecting };
        deserializer.deserialize_any(visitor).map(InstantMs)
    }
}

macro_rules! schema {
    ($type:ty, $name:literal, [$($kind:ident),+], $format:expr, $text:literal, $minimum:expr,
        $pattern:expr, $examples:expr) => {
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
                let kinds = [$(Type::$kind),+];
                let kind = match kinds.as_slice() {
                    [only] => SchemaType::new(only.clone()),
                    several => SchemaType::from_iter(several.iter().cloned()),
                };
                ObjectBuilder::new()
                    .schema_type(kind)
                    .examples($examples)
                    .minimum($minimum)
                    .pattern($pattern)
                    .format($format)
                    .description(Some($text))
                    .into()
            }
        }

        impl utoipa::ToSchema for $type {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }
        }
    };
}

schema!(
    SpanMs,
    "Span",
    [String, Integer],
    None,
    "\"30m\", \"1h 30m\", \"30d\", \"PT30M\", or ms",
    Some(0),
    Some("^[0-9P]"),
    [Value::from("30m"), Value::from(1_500)]
);
schema!(
    InstantMs,
    "Instant",
    [String, Integer],
    None,
    "RFC 3339, or ms since 1970 UTC",
    Some(INSTANT_NUMBER_MIN),
    Some("^[0-9]"),
    [Value::from("2027-01-01T09:00:00+01:00"), Value::from(1_798_790_400_000_i64)]
);
schema!(
    At,
    "At",
    [String],
    Some(utoipa::openapi::SchemaFormat::KnownFormat(utoipa::openapi::KnownFormat::DateTime)),
    "RFC 3339, UTC, with ms",
    None::<i32>,
    None::<String>,
    ["2027-01-01T08:00:00.000Z"]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        for (text, ms) in [
            ("30m", 1_800_000),
            ("PT30M", 1_800_000),
            ("1h 30m", 5_400_000),
            ("1h30m", 5_400_000),
            ("30d", 2_592_000_000),
            ("2 weeks", 1_209_600_000),
            ("1500", 1_500),
            ("1.5s", 1_500),
            ("250ms", 250),
            ("1us", 1),
            ("0s", 0),
            ("-5s", -5_000),
        ] {
            assert_eq!(parse_span(text), Ok(ms), "{text}");
        }
        for text in ["", "soon", "1y", "1mo", "1.5", "5 parsecs", "m30", "99999999999999999999"] {
            assert!(parse_span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn instants_are_read_and_written() {
        assert_eq!(parse_instant("2027-01-01T09:00:00+01:00"), Ok(1_798_790_400_000));
        assert_eq!(parse_instant("1798790400000"), Ok(1_798_790_400_000));
        assert_eq!(parse_instant("2027-01-01T08:00:00.0001Z"), Ok(1_798_790_400_001));
        assert_eq!(At(1_798_790_400_000).to_string(), "2027-01-01T08:00:00.000Z");
        assert_eq!(At(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(parse_instant("1000000000000"), Ok(INSTANT_NUMBER_MIN));
        assert!(parse_instant("tomorrow").is_err());
        assert!(parse_instant("2027-01-01T09:00:00").is_err());
    }

    #[test]
    fn seconds_are_not_taken_for_milliseconds() {
        for number in ["1798790400", "999999999999", "0"] {
            let text = parse_instant(number).unwrap_err();
            let json = serde_json::from_str::<InstantMs>(number).unwrap_err().to_string();
            for error in [text, json] {
                assert!(error.contains("looks like seconds") && error.contains(number), "{error}");
            }
        }
        assert_eq!(
            serde_json::from_str::<InstantMs>("1798790400000").unwrap().0,
            1_798_790_400_000
        );
        assert_eq!(parse_instant("-1"), Ok(-1));
    }
}
