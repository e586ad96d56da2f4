//! Paths and queries, percent-encoded.

use std::fmt::Display;

/// A part of a path, or a value of a query.
pub(super) fn encode(text: impl AsRef<[u8]>) -> String {
    let mut encoded = String::new();
    for &byte in text.as_ref() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

/// The query of a request.
#[derive(Default)]
pub(super) struct Query(Vec<String>);

impl Query {
    /// A parameter, if it has a value.
    pub(super) fn add(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.0.push(format!("{}={}", encode(name), encode(value.to_string())));
        }
    }

    /// The path with the query.
    pub(super) fn after(self, path: String) -> String {
        if self.0.is_empty() { path } else { format!("{path}?{}", self.0.join("&")) }
    }
}
