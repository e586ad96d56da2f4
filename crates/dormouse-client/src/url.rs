//! Where servers are: `dormouse://[token@]host[:port]`, several separated by commas.

use std::fmt;

use dormouse_core::error::Error;

use crate::limits::URLS_MAX;

/// The port of `dormouse serve --resp`.
const PORT_DEFAULT: u16 = 7789;

/// A server's address, taken apart. Shown without its token.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ServerUrl {
    pub(crate) is_tls: bool,
    /// Without the brackets of an IPv6 address.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The name of the token; the server takes any token under `default`.
    pub(crate) user: Option<String>,
    pub(crate) token: Option<String>,
}

impl ServerUrl {
    /// Reads one or several, separated by commas. Those behind the first may leave out the scheme
    /// and the token: then they have those of the one before.
    pub(crate) fn parse_all(text: &str) -> Result<Vec<ServerUrl>, Error> {
        let mut urls: Vec<ServerUrl> = Vec::new();
        for part in text.split(',').map(str::trim) {
            urls.push(ServerUrl::parse(part, urls.last())?);
        }
        if urls.len() > URLS_MAX {
            let count = urls.len();
            return Err(Error::invalid(format!("{count} URLs; give at most {URLS_MAX}")));
        }
        Ok(urls)
    }

    fn parse(text: &str, before: Option<&ServerUrl>) -> Result<ServerUrl, Error> {
        let wrong = |why: &str| {
            // What stands before an @ is secret.
            let shown = text.rsplit_once('@').map_or(text, |(_, host)| host);
            Error::invalid(format!(
                "URL {shown:?}: {why}; give dormouse://host:port, or dormouse://token@host:port, \
                 with the address that `dormouse serve --resp` has"
            ))
        };
        let (is_tls, rest) = match text.split_once("://") {
            Some(("dormouse", rest)) => (false, rest),
            Some(("dormouses", rest)) => (true, rest),
            Some(_) => return Err(wrong("only dormouse:// and dormouses:// are known")),
            None => (before.ok_or_else(|| wrong("it has no scheme"))?.is_tls, text),
        };
        let (login, address) = match rest.rsplit_once('@') {
            Some((login, address)) => (Some(login), address),
            None => (None, rest),
        };
        let address = address.strip_suffix('/').unwrap_or(address);
        if address.contains(['/', '?', '#']) {
            return Err(wrong("a path or a query has no place in it"));
        }
        let (host, port) = split_port(address).ok_or_else(|| wrong("its port is not a number"))?;
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(wrong("there is no host in it"));
        }
        let (user, token) = match login {
            None => (before.and_then(|url| url.user.clone()), before.and_then(|url| url.token())),
            Some(login) => {
                let (user, token) = match login.split_once(':') {
                    Some((user, token)) => (Some(user).filter(|user| !user.is_empty()), token),
                    None => (None, login),
                };
                let decode = |text| unescape(text).ok_or_else(|| wrong("its token is not UTF-8"));
                (user.map(decode).transpose()?, Some(decode(token)?))
            }
        };
        let host = host.to_owned();
        Ok(ServerUrl { is_tls, host, port: port.unwrap_or(PORT_DEFAULT), user, token })
    }

    fn token(&self) -> Option<String> {
        self.token.clone()
    }
}

/// The host and the port behind it. An IPv6 address stands in brackets.
fn split_port(address: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']')?;
            (host, if behind.is_empty() { None } else { Some(behind.strip_prefix(':')?) })
        }
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    match port {
        None => Some((host, None)),
        Some(port) => Some((host, Some(port.parse().ok().filter(|port| *port > 0)?))),
    }
}

/// Replaces `%41` by the byte it stands for; any other sign stands for itself.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "dormouses" } else { "dormouse" };
        let ServerUrl { host, port, .. } = self;
        if host.contains(':') {
            write!(f, "{scheme}://[{host}]:{port}")
        } else {
            write!(f, "{scheme}://{host}:{port}")
        }
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let urls = ServerUrl::parse_all(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let shown: Vec<String> = urls
            .iter()
            .map(|url| format!("{url} {:?} {:?}", url.user, url.token))
            .map(|text| text.replace("None", "-").replace("Some", ""))
            .collect();
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn addresses_are_taken_apart() {
        check("dormouse://127.0.0.1:9", &["dormouse://127.0.0.1:9 - -"]);
        check("dormouse://queue.example/", &["dormouse://queue.example:7789 - -"]);
        check("dormouses://[::1]:9", &["dormouses://[::1]:9 - -"]);
        check("dormouse://[::1]", &["dormouse://[::1]:7789 - -"]);
        check("dormouse://secret@h", &["dormouse://h:7789 - (\"secret\")"]);
        check("dormouse://a%40b:s%2Fx@h", &["dormouse://h:7789 (\"a@b\") (\"s/x\")"]);
        check("dormouse://:s%@h", &["dormouse://h:7789 - (\"s%\")"]);
    }

    #[test]
    fn later_ones_take_scheme_and_token_from_the_one_before() {
        check(
            "dormouses://s@a, b:1,dormouse://c,t@d",
            &[
                "dormouses://a:7789 - (\"s\")",
                "dormouses://b:1 - (\"s\")",
                "dormouse://c:7789 - (\"s\")",
                "dormouse://d:7789 - (\"t\")",
            ],
        );
    }

    #[test]
    fn other_texts_are_refused_without_their_secret() {
        for text in [
            "",
            "127.0.0.1:7789",
            "http://hidden@h",
            "redis://h",
            "dormouse://",
            "dormouse://hidden@:1",
            "dormouse://h:0",
            "dormouse://h:port",
            "dormouse://h:70000",
            "dormouse://[::1",
            "dormouse://[::1]x",
            "dormouse://h/db",
            "dormouse://h?x=hidden",
            "dormouse://a b",
            "dormouse://h,",
        ] {
            let error = ServerUrl::parse_all(text).expect_err(text);
            assert!(error.text.contains("dormouse://host:port"), "{text}: {error}");
            assert!(text.contains('?') || !error.text.contains("hidden"), "{text}: {error}");
        }
        let many = format!("dormouse://h{}", ",h".repeat(URLS_MAX));
        assert!(ServerUrl::parse_all(&many).is_err());
    }
}
