//! Host and Origin: a page in a browser must not reach this server behind its user's back.
//!
//! Without tokens everybody who can connect may do everything, and a browser on this machine can
//! connect. So the `Host` must be a name this server goes by (a rebound DNS name is not), and an
//! `Origin`, which only browsers send, must be one of them too. With tokens a foreign page has
//! none to send, and the host may be anything unless `hosts` is configured.

use hyper::StatusCode;
use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};

use super::problem::Problem;

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Which hosts are answered.
pub(crate) struct Guard {
    names: Vec<String>,
    any_host: bool,
}

impl Guard {
    /// `names`: configured ones; `bound`: the address listened on; `any_host`: whether names that
    /// are not known are let in as long as nobody configured any.
    pub(crate) fn new(names: &[String], bound: &str, any_host: bool) -> Guard {
        let any_host = any_host && names.is_empty();
        let known = LOOPBACK.into_iter().chain([bound]).map(str::to_owned);
        let names = known.chain(names.iter().map(|name| name.to_ascii_lowercase())).collect();
        Guard { names, any_host }
    }

    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let host = headers.get(HOST).map(text).unwrap_or_default();
        if !self.any_host && !self.knows(host) {
            return Err(Problem::new(
                StatusCode::MISDIRECTED_REQUEST,
                "misdirected",
                format!(
                    "host {host:?} is not one of this server; use its address, or add the \
                         name to `hosts` in its configuration"
                ),
            ));
        }
        let Some(origin) = headers.get(ORIGIN).map(text) else { return Ok(()) };
        let authority = origin.split_once("://").map_or(origin, |(_, authority)| authority);
        if authority.eq_ignore_ascii_case(host) || (self.knows(authority) && !self.any_host) {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "forbidden",
            format!(
                "origin {origin:?} is another site; call from this server's own, or add it to \
                     `hosts` in its configuration"
            ),
        ))
    }

    /// Whether a host, with or without a port, is one of ours.
    fn knows(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

fn text(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(guard: &Guard, host: &str, origin: Option<&str>) -> Result<(), u16> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        guard.check(&headers).map_err(|problem| problem.status().as_u16())
    }

    #[test]
    fn only_own_names_are_answered() {
        let guard = Guard::new(&["Queue.Example".into()], "192.0.2.7", false);
        for host in [
            "localhost",
            "LOCALHOST:7788",
            "127.0.0.1:1",
            "[::1]:7788",
            "[::1]",
            "192.0.2.7:80",
            "queue.example",
        ] {
            assert_eq!(check(&guard, host, None), Ok(()), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil:80", "", "?"] {
            assert_eq!(check(&guard, host, None), Err(421), "{host}");
        }
    }

    #[test]
    fn a_foreign_page_is_refused() {
        let guard = Guard::new(&[], "127.0.0.1", false);
        assert_eq!(check(&guard, "localhost:7788", Some("http://localhost:7788")), Ok(()));
        assert_eq!(check(&guard, "localhost:7788", Some("https://evil.example")), Err(403));
        assert_eq!(check(&guard, "localhost:7788", Some("null")), Err(403));
    }

    #[test]
    fn with_tokens_any_host_is_let_in_until_some_are_configured() {
        let guard = Guard::new(&[], "0.0.0.0", true);
        assert_eq!(check(&guard, "queue.internal", None), Ok(()));
        assert_eq!(check(&guard, "queue.internal", Some("http://queue.internal")), Ok(()));
        assert_eq!(check(&guard, "queue.internal", Some("http://evil.example")), Err(403));
        let guard = Guard::new(&["queue.internal".into()], "0.0.0.0", true);
        assert_eq!(check(&guard, "other.internal", None), Err(421));
    }
}
