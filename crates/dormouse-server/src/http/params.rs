//! Query parameters. A handler takes each by name; a parameter that is left over is an error.

use std::str::FromStr;

use crate::limits::HTTP_PARAMS_MAX;
use axum::extract::FromRequestParts;
use dormouse_core::error::Error;
use dormouse_core::limits::PAGE_MAX;
use hyper::http::request::Parts;

use super::problem::Problem;
use crate::units::{parse_instant, parse_span};

/// The query of a request, decoded.
pub(crate) struct Params {
    pairs: Vec<(String, String)>,
    asked: Vec<&'static str>,
}

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Params, Problem> {
        Params::parse(parts.uri.query().unwrap_or_default())
    }
}

impl Params {
    pub(crate) fn parse(query: &str) -> Result<Params, Problem> {
        Params::parse_with_list(query, None)
    }

    /// The same, where one parameter may be given several times.
    pub(crate) fn parse_with_list(
        query: &str,
        repeated: Option<&'static str>,
    ) -> Result<Params, Problem> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            if pairs.len() == HTTP_PARAMS_MAX {
                return Err(Problem::malformed(format!(
                    "the query has more than {HTTP_PARAMS_MAX} parameters; give fewer"
                )));
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            let is_list = repeated == Some(name.as_str());
            if !is_list && pairs.iter().any(|(known, _)| *known == name) {
                return Err(Problem::malformed(format!("{name} is given twice; give it once")));
            }
            pairs.push((name, value));
        }
        Ok(Params { pairs, asked: Vec::new() })
    }

    /// The parameter of this name, if it was given.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.asked.push(name);
        let at = self.pairs.iter().position(|(known, _)| known == name)?;
        Some(self.pairs.swap_remove(at).1)
    }

    /// All values of a parameter that may be given several times, in order.
    pub(crate) fn list(&mut self, name: &'static str) -> Vec<String> {
        self.asked.push(name);
        let given = self.pairs.extract_if(.., |(known, _)| known == name);
        given.map(|(_, value)| value).collect()
    }

    /// All parameters with this prefix, which is removed.
    pub(crate) fn prefixed(&mut self, prefix: &'static str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        self.pairs.retain_mut(|(name, value)| match name.strip_prefix(prefix) {
            Some(rest) => {
                found.push((rest.to_owned(), std::mem::take(value)));
                false
            }
            None => true,
        });
        found
    }

    /// A parameter that is parsed; `what` describes the expected value in the error.
    pub(crate) fn parsed<T: FromStr>(
        &mut self,
        name: &'static str,
        what: &str,
    ) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse()
            .map(Some)
            .map_err(|_| Problem::malformed(format!("{name} is {text:?}; give {what}")))
    }

    /// A boolean; without a value it is true.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<Option<bool>, Problem> {
        match self.text(name).as_deref() {
            None => Ok(None),
            Some("" | "true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => {
                Err(Problem::malformed(format!("{name} is {other:?}; give true or false")))
            }
        }
    }

    /// A span in ms.
    pub(crate) fn span(&mut self, name: &'static str) -> Result<Option<i64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        parse_span(&text)
            .map(Some)
            .map_err(|reason| Problem::malformed(format!("{name}: {reason}")))
    }

    /// The largest number of items in a page.
    pub(crate) fn limit(&mut self, default: usize) -> Result<usize, Problem> {
        let limit = self.parsed("limit", "a number")?.unwrap_or(default);
        if (1..=PAGE_MAX).contains(&limit) {
            return Ok(limit);
        }
        let text = format!("limit is {limit}; give 1 to {PAGE_MAX} and page on by cursor");
        Err(Error::invalid(text).into())
    }

    /// An instant in ms since 1970.
    pub(crate) fn instant(&mut self, name: &'static str) -> Result<Option<i64>, Problem> {
        // A plus that was not encoded is decoded as a space; no instant contains one.
        let Some(text) = self.text(name).map(|text| text.replace(' ', "+")) else {
            return Ok(None);
        };
        parse_instant(&text)
            .map(Some)
            .map_err(|reason| Problem::malformed(format!("{name}: {reason}")))
    }

    /// Refuses parameters that no one has taken.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        let Some((name, _)) = self.pairs.first() else { return Ok(()) };
        let known = if self.asked.is_empty() {
            "it takes none".to_owned()
        } else {
            format!("it takes {}", self.asked.join(", "))
        };
        Err(Problem::malformed(format!("{name:?} is not a parameter of this call; {known}")))
    }
}

fn decode(text: &str) -> Result<String, Problem> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
                let decoded = digit(0).zip(digit(1)).map(|(high, low)| high * 16 + low);
                let decoded = decoded.and_then(|byte| u8::try_from(byte).ok());
                let Some(decoded) = decoded else { return Err(badly_encoded()) };
                bytes.push(decoded);
                rest = after.get(2..).unwrap_or_default();
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).map_err(|_| badly_encoded())
}

fn badly_encoded() -> Problem {
    Problem::malformed("the query is not percent-encoded UTF-8; encode each name and value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let mut params = Params::parse("key=a%20b%2Fc+d&limit=10&flag&header.x=1").unwrap();
        assert_eq!(params.text("key").as_deref(), Some("a b/c d"));
        assert_eq!(params.parsed::<u32>("limit", "a number").unwrap(), Some(10));
        assert_eq!(params.flag("flag").unwrap(), Some(true));
        assert_eq!(params.prefixed("header."), [("x".to_owned(), "1".to_owned())]);
        assert_eq!(params.text("absent"), None);
        params.finish().unwrap();
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for query in ["a=%", "a=%4", "a=%zz", "a=%ff", "a=1&a=2", "a=%+1"] {
            assert!(Params::parse(query).is_err(), "{query}");
        }
        let many = |count: usize| (0..count).map(|at| format!("p{at}=&")).collect::<String>();
        assert!(Params::parse(&many(HTTP_PARAMS_MAX)).is_ok());
        assert!(Params::parse(&many(HTTP_PARAMS_MAX + 1)).is_err());
        assert!(Params::parse("dealy=1").unwrap().finish().is_err());
        let mut params = Params::parse("limit=ten&flag=yes").unwrap();
        assert!(params.parsed::<u32>("limit", "a number").is_err());
        assert!(params.flag("flag").is_err());
    }
}
