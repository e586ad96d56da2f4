//! Checks Host and Origin, so that a foreign web page cannot use this server through a browser.
//!
//! Without tokens everybody who can connect may do everything, and so may any page in a browser
//! that can connect: it can point a DNS name of its own at this server (DNS rebinding). So `Host`
//! must be a name of this server, an address, or a name without a dot, and no other DNS name. An
//! `Origin`, which only browsers send, must equal the host or be a name of this server. With tokens
//! any host is accepted unless `hosts` is configured, because a foreign page has no token.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hyper::StatusCode;
use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};

use super::problem::Problem;
use crate::access::Access;

/// The accepted values of Host and Origin.
pub(crate) struct HostGuard {
    /// Tokens may be configured while the server runs.
    access: Access,
    names: Vec<String>,
    bound: IpAddr,
}

impl HostGuard {
    /// `names` are configured; `bound` is the address of the listener.
    pub(crate) fn new(access: Access, names: &[String], bound: IpAddr) -> HostGuard {
        HostGuard { access, names: names.to_vec(), bound: bound.to_canonical() }
    }

    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let host = headers.get(HOST).map(text).unwrap_or_default();
        let is_open = self.access.is_open();
        let any_host = !is_open && self.names.is_empty();
        let is_answered = any_host || self.knows(host) || (is_open && is_no_dns_name(host));
        if !is_answered {
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
        if authority.eq_ignore_ascii_case(host) || (self.knows(authority) && !any_host) {
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

    /// Whether a host, with or without a port, is a name or address of this server.
    fn knows(&self, host: &str) -> bool {
        let name = without_port(host);
        let is_ours = |ip: IpAddr| ip.is_loopback() || ip == self.bound;
        name.eq_ignore_ascii_case("localhost")
            || address(name).is_some_and(is_ours)
            || self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Whether a host is an address or a name without a dot: a foreign site cannot own such a name in
/// the DNS.
fn is_no_dns_name(host: &str) -> bool {
    let name = without_port(host);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    address(name).is_some() || (!name.is_empty() && name.bytes().all(is_plain))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Parses a host that is an address; IPv6 addresses have brackets.
fn address(name: &str) -> Option<IpAddr> {
    let in_brackets = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address = match in_brackets {
        Some(inside) => inside.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => name.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    };
    address.as_ref().map(IpAddr::to_canonical)
}

fn text(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{TokenEntry, hash_token};

    fn tokens() -> Access {
        let scopes = vec!["*:*".parse().unwrap()];
        let entry = TokenEntry { name: "a".into(), hash: hash_token("a"), scopes };
        Access::new(vec![entry]).unwrap()
    }

    fn guard(access: &Access, names: &[&str], bound: &str) -> HostGuard {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        HostGuard::new(access.clone(), &names, bound.parse().unwrap())
    }

    fn check(guard: &HostGuard, host: &str, origin: Option<&str>) -> Result<(), u16> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        guard.check(&headers).map_err(|problem| problem.status().as_u16())
    }

    fn check_hosts(guard: &HostGuard, answered: &[&str], refused: &[&str]) {
        for host in answered {
            assert_eq!(check(guard, host, None), Ok(()), "{host}");
        }
        for host in refused {
            assert_eq!(check(guard, host, None), Err(421), "{host}");
        }
    }

    const OWN: [&str; 5] = ["localhost", "LOCALHOST:7788", "127.0.0.1:1", "[::1]:7788", "[::1]"];

    #[test]
    fn only_own_names_are_answered() {
        let guard = guard(&tokens(), &["Queue.Example"], "192.0.2.7");
        check_hosts(&guard, &OWN, &["evil.example", "192.0.2.8", "queue", "", "?"]);
        check_hosts(&guard, &["192.0.2.7:80", "queue.example"], &[]);
    }

    #[test]
    fn without_tokens_no_other_dns_name_is_answered() {
        let evil =
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil:80", "evil.", "", "?"];
        for bound in ["127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "::", "192.0.2.7"] {
            let guard = guard(&Access::open(), &["Queue.Example"], bound);
            check_hosts(&guard, &OWN, &evil);
            check_hosts(&guard, &["192.0.2.7:80", "[fd00::1]:80", "queue:1", "queue.example"], &[]);
        }
    }

    #[test]
    fn an_address_is_known_in_every_spelling() {
        let guard = guard(&tokens(), &["queue.example"], "fd00::1");
        check_hosts(&guard, &["[fd00::1]:7788", "[fd00:0::1]"], &["[fd00::2]:7788", "fd00::1"]);
        let guard = self::guard(&tokens(), &["queue.example"], "::ffff:192.0.2.7");
        check_hosts(&guard, &["192.0.2.7", "[::ffff:192.0.2.7]:80"], &["192.0.2.8"]);
    }

    #[test]
    fn a_foreign_page_is_refused() {
        let guard = guard(&Access::open(), &[], "0.0.0.0");
        assert_eq!(check(&guard, "localhost:7788", Some("http://localhost:7788")), Ok(()));
        assert_eq!(check(&guard, "queue:7788", Some("http://queue:7788")), Ok(()));
        for origin in ["https://evil.example", "http://192.0.2.7", "http://evil", "null"] {
            assert_eq!(check(&guard, "localhost:7788", Some(origin)), Err(403), "{origin}");
        }
    }

    #[test]
    fn with_tokens_any_host_is_accepted_unless_hosts_are_configured() {
        let guard = guard(&tokens(), &[], "0.0.0.0");
        assert_eq!(check(&guard, "queue.internal", None), Ok(()));
        assert_eq!(check(&guard, "queue.internal", Some("http://queue.internal")), Ok(()));
        assert_eq!(check(&guard, "queue.internal", Some("http://evil.example")), Err(403));
        let guard = self::guard(&tokens(), &["queue.internal"], "0.0.0.0");
        assert_eq!(check(&guard, "other.internal", None), Err(421));
    }

    #[test]
    fn tokens_that_are_configured_later_are_used() {
        let access = Access::open();
        let guard = guard(&access, &[], "127.0.0.1");
        assert_eq!(check(&guard, "queue.internal", None), Err(421));
        access.replace(&tokens());
        assert_eq!(check(&guard, "queue.internal", None), Ok(()));
    }
}
