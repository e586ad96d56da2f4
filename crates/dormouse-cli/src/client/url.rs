//! Where the server is.

use std::fmt;

use hyper::Uri;
use hyper::header::HeaderValue;

use crate::exit::Failure;

/// The port of `dormouse serve`.
const PORT_DEFAULT: u16 = 7788;

/// A server's address, taken apart.
#[derive(Clone, Debug)]
pub(super) struct Url {
    text: String,
    pub(super) is_tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// The value of `Host`.
    pub(super) authority: HeaderValue,
    /// The prefix of every path, behind a proxy; without a slash at its end.
    pub(super) prefix: String,
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Url, Failure> {
        let wrong = |why: &str| {
            let text = format!("--url {text}: {why}; give for example http://127.0.0.1:7788");
            Failure::usage(text)
        };
        let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = full.parse().map_err(|_| wrong("this is no address"))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("only http and https are supported")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("there is no host in it"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("a user has no place in it, use --token"));
        }
        if uri.query().is_some() {
            return Err(wrong("a query has no place in it"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(wrong("there is no host in it"));
        }
        let scheme_port = match (text.contains("://"), is_tls) {
            (_, true) => 443,
            (true, false) => 80,
            (false, false) => PORT_DEFAULT,
        };
        Ok(Url {
            text: text.to_owned(),
            is_tls,
            host,
            port: authority.port_u16().unwrap_or(scheme_port),
            authority: HeaderValue::try_from(authority.as_str())
                .map_err(|_| wrong("no header can hold its host"))?,
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(bool, &str, u16, &str)>) {
        let url = Url::parse(text).ok();
        let parts = url.as_ref().map(|url| (url.is_tls, url.host.as_str(), url.port, &*url.prefix));
        assert_eq!(parts, expected, "{text}");
    }

    #[test]
    fn addresses_are_taken_apart() {
        check("http://127.0.0.1:7788", Some((false, "127.0.0.1", 7788, "")));
        check("http://queue.example", Some((false, "queue.example", 80, "")));
        check("https://queue.example/dormouse/", Some((true, "queue.example", 443, "/dormouse")));
        check("http://[::1]:7788/", Some((false, "::1", 7788, "")));
        check("localhost:9000", Some((false, "localhost", 9000, "")));
        check("localhost", Some((false, "localhost", 7788, "")));
    }

    #[test]
    fn other_texts_are_not_addresses() {
        for text in ["", "ftp://a", "http://", "http://me:pw@host", "http://host/?a=b", "a b"] {
            check(text, None);
        }
    }
}
