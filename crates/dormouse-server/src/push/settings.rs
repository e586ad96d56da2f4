//! How the jobs of one topic are pushed, and the checks of what was given.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use dormouse_core::error::Error;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use super::address::AddressRules;
use super::url::{Host, PushUrl, Scheme, UrlPattern};
use crate::limits::{
    PUSH_CONCURRENCY_DEFAULT, PUSH_CONCURRENCY_MAX, PUSH_FATAL_MAX, PUSH_HEADERS_BYTES_MAX,
    PUSH_HEADERS_MAX, PUSH_JOB_URLS_MAX, PUSH_TIMEOUT_MS_DEFAULT, PUSH_TIMEOUT_MS_MAX,
    PUSH_TIMEOUT_MS_MIN,
};

/// Headers that belong to the connection or to the signature.
const FORBIDDEN: [&str; 12] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "accept-encoding",
    "idempotency-key",
    "http2-settings",
];
const FORBIDDEN_PREFIXES: [&str; 3] = ["proxy-", "webhook-", "dormouse-"];
/// Statuses with a meaning of their own, which cannot be fatal.
const NEVER_FATAL: [u16; 4] = [408, 410, 425, 429];

/// How the jobs of one topic are pushed.
#[derive(Clone, Debug, PartialEq)]
pub struct PushSettings {
    /// Where to, unless a job brings its own.
    pub url: PushUrl,
    /// The URLs that jobs may bring; none = they may bring none.
    pub job_urls: Vec<UrlPattern>,
    /// Sent with every request.
    pub headers: PushHeaders,
    /// For connection, request and the whole reply.
    pub timeout_ms: u64,
    /// Requests at a time.
    pub concurrency: usize,
    /// Statuses that kill a job at once.
    pub fatal: Vec<u16>,
    /// Whether the beginning of a failed reply is kept in the error text of the job.
    pub keep_reply: bool,
    /// Which secrets sign.
    pub generations: Generations,
    /// The version under which they are stored; 0 = they are not.
    pub version: u64,
    /// Why nothing is pushed until somebody resumes it.
    pub disabled: Option<Arc<str>>,
}

/// The generations of a topic's secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generations {
    /// The one that signs first.
    pub newest: u64,
    /// The one before, while receivers change over.
    pub retiring: Option<Retiring>,
}

/// A secret that signs until its end, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retiring {
    /// Its generation.
    pub generation: u64,
    /// Its end, wall ms.
    pub until_ms: u64,
}

/// Headers that an operator set. Their values may be passwords: `Debug` does not show them.
#[derive(Clone, Default, PartialEq)]
pub struct PushHeaders(HeaderMap);

impl PushSettings {
    /// With the defaults of everything else.
    pub fn new(url: PushUrl) -> PushSettings {
        PushSettings {
            url,
            job_urls: Vec::new(),
            headers: PushHeaders::default(),
            timeout_ms: PUSH_TIMEOUT_MS_DEFAULT,
            concurrency: PUSH_CONCURRENCY_DEFAULT,
            fatal: Vec::new(),
            keep_reply: true,
            generations: Generations::default(),
            version: 0,
            disabled: None,
        }
    }

    /// Checks all limits, and addresses that are written as such. What names stand for is judged at
    /// each delivery. Plain HTTP is refused unless `allows_http`.
    pub fn check(&self, allows_http: bool, rules: &AddressRules) -> Result<(), Error> {
        check_scheme("url", self.url.scheme(), allows_http)?;
        check_literal("url", &self.url, rules)?;
        check_count("job_urls", self.job_urls.len(), "patterns", PUSH_JOB_URLS_MAX)?;
        for pattern in &self.job_urls {
            check_scheme("job_urls", pattern.scheme(), allows_http)?;
            check_literal("job_urls", pattern.base(), rules)?;
        }
        check_range("timeout", self.timeout_ms, "ms", PUSH_TIMEOUT_MS_MIN, PUSH_TIMEOUT_MS_MAX)?;
        let (concurrency, max) = (self.concurrency as u64, PUSH_CONCURRENCY_MAX as u64);
        check_range("concurrency", concurrency, "requests", 1, max)?;
        check_count("fatal", self.fatal.len(), "statuses", PUSH_FATAL_MAX)?;
        let wrong = |status: &&u16| !(400..=499).contains(*status) || NEVER_FATAL.contains(*status);
        if let Some(status) = self.fatal.iter().find(wrong) {
            let text = format!(
                "fatal names {status}; give statuses from 400 to 499 except 408, 410, 425 and 429"
            );
            return Err(Error::invalid(text));
        }
        Ok(())
    }

    /// The URL of a job: its own, if it brings one that is allowed here.
    pub fn url_of(&self, own: Option<&str>, allows_http: bool) -> Result<PushUrl, Error> {
        let Some(own) = own else {
            // It may have been set at a server that allows more.
            check_scheme("url", self.url.scheme(), allows_http)?;
            return Ok(self.url.clone());
        };
        let url = PushUrl::parse(own)?;
        check_scheme("url", url.scheme(), allows_http)?;
        if self.job_urls.iter().any(|pattern| pattern.matches(&url)) {
            return Ok(url);
        }
        Err(Error::invalid(match self.job_urls.is_empty() {
            true => "url: jobs of this topic have no URL of their own; set job_urls".to_owned(),
            false => format!("url: {} matches none of job_urls", url.origin()),
        }))
    }
}

fn check_scheme(field: &str, scheme: Scheme, allows_http: bool) -> Result<(), Error> {
    match scheme {
        Scheme::Http if !allows_http => Err(Error::invalid(format!(
            "{field}: plain http is not encrypted; use https, or set push.http = true"
        ))),
        _ => Ok(()),
    }
}

/// Checks an address that is written as such. What names stand for is judged at each delivery.
pub(super) fn check_literal(field: &str, url: &PushUrl, rules: &AddressRules) -> Result<(), Error> {
    let Host::Ip(address) = *url.host() else { return Ok(()) };
    // Own addresses are judged when it comes to a connection.
    let judged = rules.judge(url.host(), SocketAddr::new(address, url.port()), |_| false);
    judged.map_err(|refusal| Error::invalid(format!("{field}: {refusal}")))
}

fn check_range(field: &str, value: u64, unit: &str, min: u64, max: u64) -> Result<(), Error> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(Error::invalid(format!("{field} is {value} {unit}; give {min} to {max}")))
}

fn check_count(field: &str, count: usize, unit: &str, max: usize) -> Result<(), Error> {
    if count <= max {
        return Ok(());
    }
    Err(Error::invalid(format!("{field} has {count} {unit}; give at most {max}")))
}

impl PushHeaders {
    /// Checks names and values.
    pub fn new(headers: &[(String, String)]) -> Result<PushHeaders, Error> {
        check_count("headers", headers.len(), "headers", PUSH_HEADERS_MAX)?;
        let bytes = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        check_count("headers", bytes, "bytes", PUSH_HEADERS_BYTES_MAX)?;
        let mut map = HeaderMap::with_capacity(headers.len());
        for (name, value) in headers {
            let (name, value) = read_header(name, value)?;
            if map.insert(&name, value).is_some() {
                let text = format!("headers has `{name}` twice; give each header once");
                return Err(Error::invalid(text));
            }
        }
        Ok(PushHeaders(map))
    }

    /// The names, for those who may see them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(HeaderName::as_str)
    }

    pub(super) fn map(&self) -> &HeaderMap {
        &self.0
    }
}

/// The value is in no error text: it may be a password.
fn read_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Error> {
    let shown = name.escape_default();
    let read = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        let text =
            format!("headers: `{shown}` is no name of a header; use letters, digits and `-`");
        Error::invalid(text)
    })?;
    let is_reserved = FORBIDDEN_PREFIXES.iter().any(|prefix| read.as_str().starts_with(prefix));
    if is_reserved || FORBIDDEN.contains(&read.as_str()) {
        let text = format!("headers: `{read}` is set by the server itself; leave it out");
        return Err(Error::invalid(text));
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        let text = format!("headers: the value of `{read}` has characters beyond printable ASCII");
        Error::invalid(text)
    })?;
    value.set_sensitive(true);
    Ok((read, value))
}

impl fmt::Debug for PushHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.names().map(|name| (name, "***"))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(change: impl FnOnce(&mut PushSettings)) -> Result<(), Error> {
        let mut settings = PushSettings::new(PushUrl::parse("https://example.com/").unwrap());
        change(&mut settings);
        settings.check(false, &AddressRules::default())
    }

    fn url(text: &str) -> PushUrl {
        PushUrl::parse(text).unwrap()
    }

    #[test]
    fn what_is_beyond_a_limit_is_refused_with_the_limit() {
        settings(|_| {}).unwrap();
        let check = |change: &dyn Fn(&mut PushSettings), expected: &str| {
            let error = settings(change).unwrap_err();
            assert!(error.text.contains(expected), "{}", error.text);
        };
        check(&|it| it.timeout_ms = 0, "timeout is 0 ms; give 1000 to 30000");
        check(&|it| it.timeout_ms = 31_000, "timeout");
        check(&|it| it.concurrency = 0, "concurrency is 0 requests; give 1 to 1000");
        check(&|it| it.concurrency = 1_001, "concurrency");
        check(&|it| it.fatal = vec![400, 200], "fatal names 200");
        check(&|it| it.fatal = vec![410], "except");
        check(&|it| it.fatal = vec![400; 101], "at most");
        check(&|it| it.url = url("http://example.com/"), "push.http");
        check(&|it| it.url = url("https://127.0.0.1/"), "loopback, 127.0.0.0/8; push.allow");
        check(&|it| it.url = url("https://[fd00::1]/"), "private");
        check(&|it| it.url = url("https://1.1.1.1:22/"), "push.ports");
        let pattern = UrlPattern::parse("http://example.com/").unwrap();
        check(&|it| it.job_urls = vec![pattern.clone()], "job_urls: plain http");
        let pattern = UrlPattern::parse("https://169.254.169.254/").unwrap();
        check(&|it| it.job_urls = vec![pattern.clone()], "job_urls: the address is in a refused");
        let pattern = UrlPattern::parse("https://*.example.com:22/").unwrap();
        settings(|it| it.job_urls = vec![pattern]).unwrap();
    }

    #[test]
    fn headers_of_the_server_and_bad_values_are_refused() {
        let read = |name: &str, value: &str| PushHeaders::new(&[(name.into(), value.into())]);
        for name in [
            "Host",
            "content-length",
            "Transfer-Encoding",
            "connection",
            "te",
            "trailer",
            "upgrade",
            "expect",
            "proxy-authorization",
            "Webhook-Id",
            "dormouse-topic",
            "",
            "a b",
            "a:b",
            "ä",
            "a\r\nb",
        ] {
            assert!(read(name, "x").is_err(), "{name:?}");
        }
        for value in ["a\r\nb: c", "a\nb", "\0", "a\u{7f}"] {
            let error = read("authorization", value).unwrap_err();
            assert!(!error.text.contains('\n') && error.text.contains("authorization"));
        }
        let headers = read("Authorization", "Bearer geheim").unwrap();
        assert_eq!(format!("{headers:?}"), r#"{"authorization": "***"}"#);
        let same = [("a".to_owned(), "1".to_owned()), ("A".to_owned(), "2".to_owned())];
        assert!(PushHeaders::new(&same).unwrap_err().text.contains("twice"));
        let many: Vec<_> = (0..21).map(|n| (format!("h{n}"), String::new())).collect();
        assert!(PushHeaders::new(&many).unwrap_err().text.contains("at most 20"));
        assert!(read("a", &"x".repeat(4_096)).unwrap_err().text.contains("4096"));
    }

    #[test]
    fn a_job_brings_only_a_url_that_is_allowed() {
        let mut it = PushSettings::new(url("https://example.com/a"));
        let text = "https://hooks.example.com/b";
        let own = Some(text);
        assert_eq!(it.url_of(None, false).unwrap(), it.url);
        // It was set at a server that allows plain HTTP.
        let plain = PushSettings::new(url("http://example.com/a"));
        assert!(plain.url_of(None, true).is_ok());
        assert!(plain.url_of(None, false).unwrap_err().text.contains("push.http"));
        assert!(it.url_of(own, false).unwrap_err().text.contains("set job_urls"));
        it.job_urls = vec![UrlPattern::parse("https://*.example.com/").unwrap()];
        assert_eq!(it.url_of(own, false).unwrap().as_str(), text);
        let check = |own: &str, expected: &str| {
            let error = it.url_of(Some(own), false).unwrap_err();
            assert!(error.text.contains(expected), "{}", error.text);
        };
        check("https://evil.org/secret", "https://evil.org matches none");
        check("http://a.example.com/", "push.http");
        check("https://a.example.com:443/", "port");
    }
}
