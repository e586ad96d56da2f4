//! A value as it was written, before its key gives it a type.

use std::time::Duration;

use dormouse_server::nearest;

use crate::units::Span;

/// The value of a key in one layer of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Raw {
    /// From a flag or the environment: text that may represent any type.
    Loose(String),
    /// From a file, where each type has its own look.
    Text(String),
    Number(i64),
    Bool(bool),
    List(Vec<Raw>),
    /// Something no key takes, by its name.
    Other(&'static str),
}

impl Raw {
    pub(super) fn text(&self) -> Result<&str, String> {
        match self {
            Raw::Loose(text) | Raw::Text(text) if text.trim().is_empty() => {
                Err("is empty".to_owned())
            }
            Raw::Loose(text) | Raw::Text(text) => Ok(text.trim()),
            _ => Err(self.unfit("a text in quotes")),
        }
    }

    pub(super) fn bool(&self) -> Result<bool, String> {
        match self {
            Raw::Bool(value) => Ok(*value),
            Raw::Loose(text) => match text.trim() {
                "true" | "1" | "yes" | "on" => Ok(true),
                "false" | "0" | "no" | "off" => Ok(false),
                other => Err(format!("`{other}` is neither true nor false")),
            },
            _ => Err(self.unfit("true or false")),
        }
    }

    /// A number within bounds.
    pub(super) fn number(&self, min: u64, max: u64) -> Result<u64, String> {
        let (shown, number) = match self {
            Raw::Number(number) => (number.to_string(), u64::try_from(*number).ok()),
            Raw::Loose(text) => (text.trim().to_owned(), text.trim().parse().ok()),
            _ => return Err(self.unfit("a number")),
        };
        number
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| format!("`{shown}` is not a number from {min} to {max}"))
    }

    /// A span of time: "10s", "1m 30s", "PT10S", or a number of ms.
    pub(super) fn span(&self, max_ms: u64) -> Result<Duration, String> {
        let shown = match self {
            Raw::Number(number) => number.to_string(),
            Raw::Loose(text) | Raw::Text(text) => text.trim().to_owned(),
            _ => return Err(self.unfit("a span, as in \"10s\"")),
        };
        let span = shown.parse::<Span>().map_err(|error| format!("`{shown}`: {error}"))?;
        let (span, max) = (span.duration(), Duration::from_millis(max_ms));
        if span > max {
            return Err(format!("`{shown}` is too long; at most {}s", max.as_secs()));
        }
        Ok(span)
    }

    pub(super) fn list(&self) -> Result<Vec<String>, String> {
        match self {
            Raw::Loose(text) => {
                let words = text.split(',').map(|word| word.trim().to_owned());
                Ok(words.filter(|word| !word.is_empty()).collect())
            }
            Raw::List(items) => items
                .iter()
                .map(|item| match item {
                    Raw::Text(_) => item.text().map(str::to_owned),
                    _ => Err(item.unfit("texts in quotes")),
                })
                .collect(),
            _ => Err(self.unfit("a list, as in [\"a\", \"b\"]")),
        }
    }

    fn unfit(&self, wanted: &str) -> String {
        let is = match self {
            Raw::Loose(_) | Raw::Text(_) => "a text",
            Raw::Number(_) => "a number",
            Raw::Bool(_) => "true or false",
            Raw::List(_) => "a list",
            Raw::Other(name) => name,
        };
        format!("wants {wanted}, and this is {is}")
    }
}

/// `; did you mean ...?`, or nothing.
pub(super) fn suggestion<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    let meant = nearest(word, known);
    meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default()
}

/// One of some words, or the error.
pub(super) fn one_of<T: Copy>(text: &str, words: &[(&'static str, T)]) -> Result<T, String> {
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let known = || words.iter().map(|(word, _)| *word);
    let list = known().collect::<Vec<_>>().join(", ");
    Err(format!("`{text}` is none of {list}{}", suggestion(text, known())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loose(text: &str) -> Raw {
        Raw::Loose(text.to_owned())
    }

    #[test]
    fn spans_are_read_as_everywhere() {
        let check = |raw: Raw, ms: Option<u64>| {
            let span = raw.span(60_000).ok();
            assert_eq!(span, ms.map(Duration::from_millis), "{raw:?}");
        };
        check(loose("10s"), Some(10_000));
        check(loose("PT10S"), Some(10_000));
        check(loose("1500"), Some(1_500));
        check(loose("0"), Some(0));
        check(Raw::Number(1_500), Some(1_500));
        check(Raw::Text("30s 500ms".to_owned()), Some(30_500));
        check(loose("1m"), Some(60_000));
        check(loose("61s"), None);
        check(loose("-1s"), None);
        check(Raw::Number(-1), None);
        check(loose("soon"), None);
        check(loose(""), None);
        check(Raw::Bool(true), None);
    }

    #[test]
    fn a_file_has_types_and_a_flag_has_none() {
        assert_eq!(loose("12").number(1, 100), Ok(12));
        assert_eq!(Raw::Number(12).number(1, 100), Ok(12));
        let error = Raw::Text("12".to_owned()).number(1, 100).unwrap_err();
        assert_eq!(error, "wants a number, and this is a text");
        let error = loose("101").number(1, 100).unwrap_err();
        assert_eq!(error, "`101` is not a number from 1 to 100");
        assert_eq!(Raw::Number(-5).number(1, 100).unwrap_err(), error.replace("101", "-5"));
        assert_eq!(loose("true").bool(), Ok(true));
        assert!(Raw::Text("true".to_owned()).bool().is_err());
        let list = Raw::List(vec![Raw::Text("a".to_owned()), Raw::Text("b".to_owned())]);
        assert_eq!(list.list(), loose("a, b,").list());
        assert!(Raw::List(vec![Raw::Number(1)]).list().is_err());
        assert!(Raw::Number(1).text().is_err());
    }

    #[test]
    fn words_that_are_nearly_right_are_suggested() {
        let words = [("disk", 1), ("memory", 2)];
        assert_eq!(one_of("disk", &words), Ok(1));
        let error = one_of("memroy", &words).unwrap_err();
        assert_eq!(error, "`memroy` is none of disk, memory; did you mean `memory`?");
        assert_eq!(one_of("tape", &words).unwrap_err(), "`tape` is none of disk, memory");
    }
}
