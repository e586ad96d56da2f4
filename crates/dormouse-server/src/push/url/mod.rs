//! The URLs that jobs are pushed to: read strictly, never corrected.
//!
//! A parser that corrects what it reads (`127.1`, `%31`, tabs, `\`) lets one text name two hosts:
//! the one that was checked and the one that is called. So only the normal form is accepted, and
//! the error says which part is not in it.

#[cfg(test)]
mod fuzz;
mod host;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use dormouse_core::error::Error;

use crate::limits::PUSH_URL_BYTES_MAX;

/// How the receiver is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain HTTP, which an operator has to allow.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Scheme {
    fn prefix(self) -> &'static str {
        match self {
            Scheme::Http => "http://",
            Scheme::Https => "https://",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// The host of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A name, in lower case, without a dot at its end.
    Name(Arc<str>),
    /// An address.
    Ip(IpAddr),
}

/// A URL in its normal form.
#[derive(Clone, PartialEq, Eq)]
pub struct PushUrl {
    text: Arc<str>,
    scheme: Scheme,
    host: Host,
    port: u16,
    /// Where the path begins in the text: before it lies the origin.
    path_at: usize,
}

/// The URLs that jobs of a topic may bring: `https://host[:port]/prefix`, with `*.` for any
/// subdomain.
#[derive(Clone, PartialEq, Eq)]
pub struct UrlPattern {
    /// With `*.` left out.
    base: PushUrl,
    has_wildcard: bool,
}

/// What is wrong with a URL.
#[derive(Debug)]
struct Fault {
    part: &'static str,
    reason: String,
}

impl Fault {
    fn new(part: &'static str, reason: impl Into<String>) -> Fault {
        Fault { part, reason: reason.into() }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error::invalid(format!("url: {}: {}", fault.part, fault.reason))
    }
}

impl PushUrl {
    /// Reads a URL; refuses what is not in its normal form.
    pub fn parse(text: &str) -> Result<PushUrl, Error> {
        Ok(read(text)?)
    }

    /// Whether TLS is spoken.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port, given or usual.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Scheme, host and port, as connections and breakers are kept by.
    pub fn origin(&self) -> &str {
        &self.text[..self.path_at]
    }

    /// The value of the header `host`.
    pub(super) fn authority(&self) -> &str {
        &self.text[self.scheme.prefix().len()..self.path_at]
    }

    /// Path and query.
    pub fn path_and_query(&self) -> &str {
        &self.text[self.path_at..]
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for PushUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The origin only: receivers put secrets into paths and queries.
impl fmt::Debug for PushUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PushUrl({}/...)", self.origin())
    }
}

impl FromStr for PushUrl {
    type Err = Error;
    fn from_str(text: &str) -> Result<PushUrl, Error> {
        PushUrl::parse(text)
    }
}

impl UrlPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<UrlPattern, Error> {
        Ok(read_pattern(text)?)
    }

    /// Whether TLS is spoken.
    pub fn scheme(&self) -> Scheme {
        self.base.scheme
    }

    /// What it begins with, `*.` left out.
    pub(super) fn base(&self) -> &PushUrl {
        &self.base
    }

    /// Whether a job may bring this URL.
    pub fn matches(&self, url: &PushUrl) -> bool {
        url.scheme == self.base.scheme
            && url.port == self.base.port
            && self.matches_host(&url.host)
            && self.matches_path(url.path_and_query())
    }

    fn matches_host(&self, host: &Host) -> bool {
        match (&self.base.host, host) {
            (Host::Name(base), Host::Name(name)) if self.has_wildcard => {
                let above = name.strip_suffix(&**base);
                above.is_some_and(|above| above.len() > 1 && above.ends_with('.'))
            }
            (base, host) => base == host,
        }
    }

    /// A prefix ends where a segment does: `/hooks` is no prefix of `/hooksmith`.
    fn matches_path(&self, path: &str) -> bool {
        let prefix = self.base.path_and_query();
        let Some(rest) = path.strip_prefix(prefix) else { return false };
        prefix.ends_with('/') || rest.is_empty() || rest.starts_with(['/', '?'])
    }
}

impl fmt::Display for UrlPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.has_wildcard { "*." } else { "" };
        let prefix = self.base.scheme.prefix();
        write!(f, "{prefix}{star}{}", &self.base.text[prefix.len()..])
    }
}

impl fmt::Debug for UrlPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UrlPattern({self})")
    }
}

fn read_pattern(text: &str) -> Result<UrlPattern, Fault> {
    let plain = text.replacen("://*.", "://", 1);
    let has_wildcard = plain.len() < text.len();
    let base = read(&plain)?;
    if base.path_and_query().contains('?') {
        return Err(Fault::new("query", "a pattern ends with its path; leave out the query"));
    }
    if has_wildcard {
        match &base.host {
            Host::Name(name) if name.contains('.') => {}
            _ => {
                let reason = "`*.` needs a domain of two labels at least, as in `*.example.com`";
                return Err(Fault::new("host", reason));
            }
        }
    }
    Ok(UrlPattern { base, has_wildcard })
}

fn read(text: &str) -> Result<PushUrl, Fault> {
    check_bytes(text)?;
    let scheme = read_scheme(text)?;
    let rest = &text[scheme.prefix().len()..];
    if rest.contains('#') {
        return Err(Fault::new("fragment", "it is never sent; leave out `#` and what follows"));
    }
    let authority = &rest[..rest.find(['/', '?']).unwrap_or(rest.len())];
    if authority.contains('@') {
        let reason = "a URL is no place for a password; give it as a header instead";
        return Err(Fault::new("userinfo", reason));
    }
    let (host, port) = split_port(authority)?;
    let host = host::read(host)?;
    let port = read_port(port, scheme)?;
    let path_at = scheme.prefix().len() + authority.len();
    check_path(&text[path_at..])?;
    Ok(PushUrl { text: Arc::from(text), scheme, host, port, path_at })
}

fn check_bytes(text: &str) -> Result<(), Fault> {
    if text.len() > PUSH_URL_BYTES_MAX {
        let reason = format!("it has {} bytes; at most {PUSH_URL_BYTES_MAX}", text.len());
        return Err(Fault::new("length", reason));
    }
    let reason = match text.chars().find(|&c| c == '\\' || !c.is_ascii_graphic()) {
        None => return Ok(()),
        Some('\\') => "`\\` is read as `/` by some; write `/`, or `%5C`".to_owned(),
        Some(' ') => "it has a blank; write `%20`".to_owned(),
        Some(c) if c.is_ascii() => format!("it has the control character {:#04x}", u32::from(c)),
        Some(c) => format!(
            "`{}` is not ASCII; percent-encode it, or write the host as `xn--...`",
            c.escape_default()
        ),
    };
    Err(Fault::new("characters", reason))
}

fn read_scheme(text: &str) -> Result<Scheme, Fault> {
    for scheme in [Scheme::Https, Scheme::Http] {
        let prefix = scheme.prefix();
        if text.starts_with(prefix) {
            return Ok(scheme);
        }
        // `check_bytes` has seen to it that every byte is a character.
        if text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)) {
            return Err(Fault::new("scheme", format!("write `{prefix}` in lower case")));
        }
        if text.starts_with(prefix.trim_end_matches('/')) {
            return Err(Fault::new("scheme", format!("two slashes follow it: `{prefix}`")));
        }
    }
    Err(Fault::new("scheme", "begin with `https://`"))
}

/// The host, and the port if there is one.
fn split_port(authority: &str) -> Result<(&str, Option<&str>), Fault> {
    if authority.starts_with('[') {
        let end = authority.find(']');
        let end = end.ok_or_else(|| Fault::new("host", "`[` has no `]`"))?;
        let (host, rest) = authority.split_at(end + 1);
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(Fault::new("host", "only `:` and a port follow `]`")),
        };
    }
    match authority.split_once(':') {
        Some((_, port)) if port.contains(':') => {
            Err(Fault::new("host", "write an IPv6 address in brackets, as in `[2001:db8::1]`"))
        }
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((authority, None)),
    }
}

fn read_port(port: Option<&str>, scheme: Scheme) -> Result<u16, Fault> {
    let Some(text) = port else { return Ok(scheme.default_port()) };
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_number { text.parse::<u16>().ok() } else { None };
    match number {
        Some(port) if port == scheme.default_port() => {
            Err(Fault::new("port", format!("{port} is the usual one; leave out `:{text}`")))
        }
        Some(port) if port > 0 && !text.starts_with('0') => Ok(port),
        Some(port) if port > 0 => Err(Fault::new("port", format!("write it as `{port}`"))),
        _ => Err(Fault::new("port", format!("`{text}` is not a number from 1 to 65535"))),
    }
}

fn check_path(text: &str) -> Result<(), Fault> {
    if !text.starts_with('/') {
        return Err(Fault::new("path", "write a `/` behind the host"));
    }
    let path_end = text.find('?').unwrap_or(text.len());
    check_encoding(text, path_end)?;
    let is_dots = |segment: &str| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        plain == "." || plain == ".."
    };
    match text[..path_end].split('/').find(|segment| is_dots(segment)) {
        Some(segment) => {
            let reason = format!("`{segment}` is a step within the path; write where it leads");
            Err(Fault::new("path", reason))
        }
        None => Ok(()),
    }
}

/// The characters that RFC 3986 allows. `'` is one of them, but parsers encode it in a query.
fn check_encoding(text: &str, path_end: usize) -> Result<(), Fault> {
    for (at, byte) in text.bytes().enumerate() {
        let part = if at < path_end { "path" } else { "query" };
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~!$&()*+,;=:@/?".contains(&byte);
        if is_plain || (byte == b'\'' && at < path_end) {
            continue;
        }
        if byte != b'%' {
            let reason = format!("write `{}` as `%{byte:02X}`", char::from(byte));
            return Err(Fault::new(part, reason));
        }
        let digits = text.as_bytes().get(at + 1..at + 3);
        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            return Err(Fault::new(part, "`%` has to be followed by two hexadecimal digits"));
        }
    }
    Ok(())
}
