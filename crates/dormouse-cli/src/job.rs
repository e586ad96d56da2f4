//! A job in a reply of the server, leased or not.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::exit::Failure;
use crate::output::shorten;

/// How much of a body is shown in a table.
const PREVIEW_CHARS_MAX: usize = 40;

/// The fields that all views of a job have, and those of some.
#[derive(Debug, Deserialize)]
pub(crate) struct Job {
    pub(crate) topic: String,
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) key: Option<String>,
    #[serde(default)]
    pub(crate) key_base64: Option<String>,
    #[serde(default)]
    pub(crate) state: String,
    pub(crate) due_at: String,
    #[serde(default)]
    pub(crate) priority: u32,
    #[serde(default)]
    pub(crate) ttr_ms: u64,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) error: Option<String>,
    #[serde(default)]
    pub(crate) attempts: u32,

    /// Of a job that a schedule has put.
    #[serde(default)]
    pub(crate) schedule: Option<String>,
    #[serde(default)]
    pub(crate) tick: Option<String>,

    /// Of a leased job.
    #[serde(default)]
    pub(crate) token: String,
    #[serde(default)]
    pub(crate) attempt: u32,
    #[serde(default)]
    pub(crate) late_ms: u64,

    #[serde(default, deserialize_with = "given")]
    body: Option<Box<RawValue>>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    base64: Option<String>,
}

/// A body that is present, even if it is `null`.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::deserialize(deserializer).map(Some)
}

impl Job {
    /// The body's bytes, as they were put.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, Failure> {
        match (&self.body, &self.text, &self.base64) {
            (Some(body), _, _) => Ok(body.get().as_bytes().to_vec()),
            (_, Some(text), _) => Ok(text.as_bytes().to_vec()),
            (_, _, Some(base64)) => STANDARD
                .decode(base64)
                .map_err(|error| Failure::new(format!("job {}: its body: {error}", self.id))),
            (None, None, None) => Ok(Vec::new()),
        }
    }

    /// The beginning of the body, for a table.
    pub(crate) fn preview(&self) -> String {
        let text = match (&self.body, &self.text, &self.base64) {
            (Some(body), _, _) => body.get(),
            (_, Some(text), _) => text,
            (_, _, Some(base64)) => return format!("base64:{}", shorten(base64, 33)),
            (None, None, None) => return String::new(),
        };
        shorten(text, PREVIEW_CHARS_MAX)
    }

    /// The key, for a table.
    pub(crate) fn key_shown(&self) -> String {
        match (&self.key, &self.key_base64) {
            (Some(key), _) => key.clone(),
            (None, Some(base64)) => format!("base64:{base64}"),
            (None, None) => String::new(),
        }
    }
}

/// Bytes for a `base64` field.
pub(crate) fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fields: &str, bytes: &[u8], preview: &str) {
        let json = format!(r#"{{"topic":"a","id":"1","due_at":"",{fields}}}"#);
        let job: Job = serde_json::from_str(&json).unwrap();
        assert_eq!(job.bytes().unwrap(), bytes, "{fields}");
        assert_eq!(job.preview(), preview, "{fields}");
    }

    #[test]
    fn bodies_are_returned_as_they_were_put() {
        check(r#""body":{"a":1.50}"#, br#"{"a":1.50}"#, r#"{"a":1.50}"#);
        check(r#""body":null"#, b"null", "null");
        check(r#""text":"hi\n""#, b"hi\n", "hi\n");
        check(r#""base64":"/wA=""#, &[0xff, 0], "base64:/wA=");
        check(r#""key":"k""#, b"", "");
    }
}
