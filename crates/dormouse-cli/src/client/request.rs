//! Requests to the server.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde::Serialize;
use serde_json::{Map, Value};

/// A request, before it is known to which server.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Bytes,
    /// How long the server was asked to wait before it answers.
    pub(super) wait: Duration,
}

impl Request {
    pub(crate) fn get(path: impl Into<String>) -> Request {
        Request::new(Method::GET, path)
    }

    pub(crate) fn post(path: impl Into<String>) -> Request {
        Request::new(Method::POST, path)
    }

    pub(crate) fn put(path: impl Into<String>) -> Request {
        Request::new(Method::PUT, path)
    }

    pub(crate) fn patch(path: impl Into<String>) -> Request {
        Request::new(Method::PATCH, path)
    }

    pub(crate) fn delete(path: impl Into<String>) -> Request {
        Request::new(Method::DELETE, path)
    }

    fn new(method: Method, path: impl Into<String>) -> Request {
        let (path, body) = (path.into(), Bytes::new());
        Request { method, path, headers: Vec::new(), body, wait: Duration::ZERO }
    }

    /// With a JSON body.
    pub(crate) fn json(self, body: &impl Serialize) -> Request {
        // Only maps with keys that are no strings cannot be written, and there are none.
        let body = serde_json::to_vec(body).unwrap_or_default();
        self.header("content-type", "application/json").body(body)
    }

    /// With a body of any type.
    pub(crate) fn body(self, body: impl Into<Bytes>) -> Request {
        Request { body: body.into(), ..self }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Request {
        self.headers.push((name, value.into()));
        self
    }

    /// The server may wait this long before it answers.
    pub(crate) fn waiting(self, wait: Duration) -> Request {
        Request { wait, ..self }
    }
}

/// The fields of a JSON object that are given.
pub(crate) fn fields<const N: usize>(given: [(&str, Option<Value>); N]) -> Map<String, Value> {
    let some = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
    given.into_iter().filter_map(some).collect()
}

/// Percent-encodes a segment of a path, or a value of a query.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(byte.into());
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    // A segment of dots alone would be taken for a direction.
    if matches!(encoded.as_str(), "." | "..") { encoded.replace('.', "%2E") } else { encoded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_percent_encoded() {
        let check = |text: &str, expected: &str| assert_eq!(encode(text), expected);
        check("orders", "orders");
        check("a/b c", "a%2Fb%20c");
        check("ä?&=+", "%C3%A4%3F%26%3D%2B");
        check("..", "%2E%2E");
        check("a..b", "a..b");
    }
}
