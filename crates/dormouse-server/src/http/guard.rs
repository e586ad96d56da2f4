//! Checks Host and Origin, so that a foreign web page cannot use this server through a browser.
//!
//! Without tokens everybody who can connect may do everything, and so may any page in a browser
//! that can connect: it can point a name of its own at this server (DNS rebinding). So `Host` must
//! be a name of this server or an address, and no other name: one without a dot can be forged in a
//! local network. An `Origin`, which only browsers send, must be this server's own, with its port:
//! other ports of this machine are other sites. With tokens any host is accepted unless `hosts` is
//! configured, because a foreign page has no token.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hyper::StatusCode;
use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};

use super::problem::Problem;
use crate::access::Access;

/// The accepted values of Host and Origin.
pub(crate) struct HostGuard {
    /// Tokens may be configured while the server runs.
    access: Access,
    /// Those that are configured.
    names: Vec<String>,
    /// The names of this machine.
    machine: Vec<String>,
    bound: SocketAddr,
}

impl HostGuard {
    /// `names` are configured; `bound` is the address of the listener.
    pub(crate) fn new(access: Access, names: &[String], mut bound: SocketAddr) -> HostGuard {
        bound.set_ip(bound.ip().to_canonical());
        HostGuard { access, names: names.to_vec(), machine: machine_names(), bound }
    }

    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let host = headers.get(HOST).map(text).unwrap_or_default();
        let is_open = self.access.is_open();
        let any_host = !is_open && self.names.is_empty();
        let is_answered =
            any_host || self.knows(host) || (is_open && address(split_port(host).0).is_some());
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
        let mut origins = headers.get_all(ORIGIN).iter().map(text);
        let Some(origin) = origins.next() else { return Ok(()) };
        let is_own = match origin.split_once("://") {
            Some((scheme, authority)) => {
                let authority = without_default_port(scheme, authority);
                authority.eq_ignore_ascii_case(without_default_port(scheme, host))
                    || (!any_host && self.is_own(authority))
            }
            None => false,
        };
        if is_own && origins.next().is_none() {
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
        let name = split_port(host).0;
        let is_ours = |ip: IpAddr| ip.is_loopback() || ip == self.bound.ip();
        name.eq_ignore_ascii_case("localhost")
            || address(name).is_some_and(is_ours)
            || is_among(&self.machine, name)
            || is_among(&self.names, name)
    }

    /// Whether this is where a browser finds this server: by a name and the port of it, or by a
    /// configured name, which a proxy may serve on the usual port.
    fn is_own(&self, authority: &str) -> bool {
        let (name, port) = split_port(authority);
        match port {
            Some(port) => port.parse() == Ok(self.bound.port()) && self.knows(authority),
            None => is_among(&self.names, name),
        }
    }
}

fn is_among(names: &[String], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The name that this machine has by itself, whole and up to its first dot.
fn machine_names() -> Vec<String> {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy().into_owned();
    let short = name.split('.').next().unwrap_or_default().to_owned();
    [name, short].into_iter().filter(|name| !name.is_empty()).collect()
}

/// A host's name, and its port if there is one.
fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (name, Some(port)),
        _ => (host, None),
    }
}

fn without_default_port<'a>(scheme: &str, authority: &'a str) -> &'a str {
    match split_port(authority) {
        (name, Some("80")) if scheme.eq_ignore_ascii_case("http") => name,
        (name, Some("443")) if scheme.eq_ignore_ascii_case("https") => name,
        _ => authority,
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
        let bound = SocketAddr::new(bound.parse().unwrap(), 7788);
        HostGuard {
            machine: vec!["Burrow".into()],
            ..HostGuard::new(access.clone(), &names, bound)
        }
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

    const OWN: [&str; 6] =
        ["localhost", "LOCALHOST:7788", "127.0.0.1:1", "[::1]:7788", "[::1]", "burrow:7788"];

    #[test]
    fn only_own_names_are_answered() {
        let guard = guard(&tokens(), &["Queue.Example"], "192.0.2.7");
        check_hosts(&guard, &OWN, &["evil.example", "192.0.2.8", "queue", "", "?"]);
        check_hosts(&guard, &["192.0.2.7:80", "queue.example"], &[]);
    }

    #[test]
    fn without_tokens_no_other_dns_name_is_answered() {
        let evil = [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil:80",
            "evil.",
            "wpad",
            "",
            "?",
        ];
        for bound in ["127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "::", "192.0.2.7"] {
            let guard = guard(&Access::open(), &["Queue.Example"], bound);
            check_hosts(&guard, &OWN, &evil);
            check_hosts(&guard, &["192.0.2.7:80", "[fd00::1]:80", "queue.example"], &["queue:1"]);
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
        let guard = guard(&Access::open(), &["queue.example"], "0.0.0.0");
        for (host, origin) in [
            ("localhost:7788", "http://localhost:7788"),
            ("localhost:7788", "http://127.0.0.1:7788"),
            ("burrow:7788", "http://Burrow:7788"),
            // A port that is forwarded to this server.
            ("localhost:8080", "http://localhost:8080"),
            ("localhost:80", "http://localhost"),
            // A proxy.
            ("localhost:7788", "https://queue.example"),
            ("queue.example", "https://queue.example:443"),
        ] {
            assert_eq!(check(&guard, host, Some(origin)), Ok(()), "{origin}");
        }
        for origin in [
            "https://evil.example",
            "http://192.0.2.7",
            "http://evil",
            "null",
            // Other sites on this machine.
            "http://localhost:3000",
            "http://127.0.0.1:9999",
            "http://localhost",
            "https://queue.example:3000",
        ] {
            assert_eq!(check(&guard, "localhost:7788", Some(origin)), Err(403), "{origin}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost:7788".parse().unwrap());
        for _ in 0..2 {
            headers.append(ORIGIN, "http://localhost:7788".parse().unwrap());
        }
        assert_eq!(guard.check(&headers).unwrap_err().status(), StatusCode::FORBIDDEN);
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
