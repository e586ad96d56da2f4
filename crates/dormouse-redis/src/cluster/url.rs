//! The URL of Redis: its seed nodes or sentinels, and the login.

use std::fmt;

use dormouse_core::error::Error;
use redis::io::tcp::TcpSettings;
use redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo,
};

const FORM: &str = "redis://[user[:password]@]host[:port][,host[:port]...][/db]";
const SENTINEL_FORM: &str = "redis+sentinel://[user[:password]@]host[:port][,...]/service[/db]";
const SENTINEL_PORT: u16 = 26379;

/// The address of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address {
    /// A name, or an IP address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// Reads `host:port` as nodes write it, IPv6 without brackets. A node that does not know its
    /// own name omits it or writes `?`; then it is the host that was asked.
    pub(super) fn parse(text: &str, asked: &Address) -> Option<Address> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = if host.is_empty() || host == "?" { &asked.host } else { host };
        Some(Address { host: host.to_owned(), port: port.parse().ok()? })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

pub(crate) struct RedisUrl {
    /// The seed nodes: any node of a cluster leads to the others. At least one. With a service
    /// they are sentinels.
    pub(super) seeds: Vec<Address>,
    /// What sentinels call the primary and its replicas.
    pub(super) service: Option<String>,
    /// The database; a cluster has only 0.
    pub(super) db: i64,
    login: RedisConnectionInfo,
    is_tls: bool,
}

impl RedisUrl {
    /// Reads a URL. Errors repeat no part of it, since any part may be a password.
    pub(super) fn parse(url: &str) -> Result<RedisUrl, Error> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| unreadable("it has no `://`"))?;
        let (is_tls, is_sentinel) = kind(scheme)?;
        // The last `@`: a password may contain one that was not encoded.
        let (login, hosts_and_path) = match rest.rsplit_once('@') {
            Some((login, hosts_and_path)) => (format!("{login}@"), hosts_and_path),
            None => (String::new(), rest),
        };
        if login.contains("://") || hosts_and_path.contains(['?', '#']) {
            return Err(unreadable("it has more than one scheme, or options after the hosts"));
        }
        let (hosts, path) = hosts_and_path.split_once('/').unwrap_or((hosts_and_path, ""));
        let (service, db) = match path.split_once('/') {
            _ if !is_sentinel => (None, path),
            Some((service, db)) => (Some(service), db),
            None => (Some(path), ""),
        };
        hosts.split(',').try_for_each(check_host)?;
        service.map_or(Ok(()), check_service)?;
        check_database(db, hosts.contains(',') && !is_sentinel)?;
        let infos: Result<Vec<ConnectionInfo>, Error> = hosts
            .split(',')
            .map(|host| match is_sentinel && port_of(host).is_none() {
                true => format!("{host}:{SENTINEL_PORT}"),
                false => host.to_owned(),
            })
            // Always the plain scheme: TLS was checked above.
            .map(|host| format!("redis://{login}{host}/{db}").into_connection_info())
            .map(|info| info.map_err(|error| unreadable(&error.to_string())))
            .collect();
        RedisUrl::from_infos(&infos?, is_tls, service)
    }

    fn from_infos(
        infos: &[ConnectionInfo],
        is_tls: bool,
        service: Option<&str>,
    ) -> Result<RedisUrl, Error> {
        let address = |info: &ConnectionInfo| match info.addr() {
            ConnectionAddr::Tcp(host, port) => Some(Address { host: host.clone(), port: *port }),
            _ => None,
        };
        let seeds: Vec<Address> = infos.iter().filter_map(address).collect();
        let first = infos.first().ok_or_else(|| unreadable("it names no host"))?;
        let login = first.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let service = service.map(str::to_owned);
        Ok(RedisUrl { seeds, service, db: login.db(), login, is_tls })
    }

    /// Whether this is the address of a sentinel, not of Redis.
    pub(super) fn is_sentinel(&self, address: &Address) -> bool {
        self.service.is_some() && self.seeds.contains(address)
    }

    /// The login, and the database.
    pub(super) fn login(&self) -> RedisConnectionInfo {
        self.login.clone()
    }

    /// For a sentinel that asks for a login: it has no databases.
    pub(super) fn sentinel_login(&self) -> RedisConnectionInfo {
        self.login.clone().set_db(0)
    }

    /// How to connect to a node: all have the same TLS settings.
    pub(super) fn connection_info(
        &self,
        address: &Address,
        login: RedisConnectionInfo,
    ) -> Result<ConnectionInfo, Error> {
        let (host, port) = (address.host.clone(), address.port);
        let addr = match self.is_tls {
            true => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
            false => ConnectionAddr::Tcp(host, port),
        };
        let info = addr.into_connection_info().map_err(|error| unreadable(&error.to_string()))?;
        // Small requests must not be delayed by Nagle's algorithm.
        let tcp = TcpSettings::default().set_nodelay(true);
        Ok(info.set_redis_settings(login).set_tcp_settings(tcp))
    }

    /// Whether the URL has a password.
    pub(super) fn has_password(&self) -> bool {
        self.login.password().is_some()
    }

    /// Removes the password from a text that a server sent.
    pub(super) fn without_password(&self, text: &str) -> String {
        match self.login.password() {
            Some(password) if !password.is_empty() => text.replace(password, "***"),
            _ => text.to_owned(),
        }
    }
}

/// Whether the scheme means TLS, and whether it means sentinels.
fn kind(scheme: &str) -> Result<(bool, bool), Error> {
    let plain = scheme.strip_suffix("+sentinel");
    match plain.unwrap_or(scheme) {
        "redis" => Ok((false, plain.is_some())),
        "rediss" if cfg!(feature = "tls") => Ok((true, plain.is_some())),
        "rediss" => Err(Error::invalid(
            "rediss:// needs TLS, and this build has none: build with the feature `tls`, \
             or use redis://",
        )),
        _ => Err(unreadable("its scheme is not redis:// or rediss://, nor one of Sentinel")),
    }
}

/// The text after the colon; the colons of an IPv6 address are inside brackets.
fn port_of(host: &str) -> Option<&str> {
    let after_brackets = host.rfind(']').map_or(0, |end| end + 1);
    host[after_brackets..].split_once(':').map(|(_, port)| port)
}

/// Refuses a host without a name or with an impossible port.
fn check_host(host: &str) -> Result<(), Error> {
    if host.is_empty() || host.starts_with(':') {
        return Err(unreadable("it names no host"));
    }
    match port_of(host).map(str::parse::<u16>) {
        None | Some(Ok(1..)) => Ok(()),
        Some(Ok(0) | Err(_)) => Err(unreadable("a port is not a number from 1 to 65535")),
    }
}

/// Sentinels allow these characters in names.
fn check_service(service: &str) -> Result<(), Error> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match service {
        "" => Err(unreadable(
            "it names no service after the hosts; `sentinel monitor` in the configuration of the \
             sentinels has the name",
        )),
        _ if service.chars().all(is_good) => Ok(()),
        _ => Err(unreadable("the service has other characters than letters, digits and . _ -")),
    }
}

/// Refuses a database that is not a number, and for a cluster any but 0.
fn check_database(db: &str, is_cluster: bool) -> Result<(), Error> {
    match db.parse::<u32>() {
        _ if db.is_empty() => Ok(()),
        Err(_) => Err(unreadable("the database after the `/` is not a number")),
        Ok(1..) if is_cluster => {
            Err(unreadable("several nodes are a cluster, and that has no database but 0"))
        }
        Ok(_) => Ok(()),
    }
}

fn unreadable(what: &str) -> Error {
    Error::invalid(format!(
        "the URL of Redis cannot be read ({what}); it looks like {FORM} or {SENTINEL_FORM}, \
         with : / ? # @ , in a password percent-encoded"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(url: &str) -> Vec<String> {
        RedisUrl::parse(url).unwrap().seeds.iter().map(Address::to_string).collect()
    }

    #[test]
    fn urls_name_one_or_more_nodes() {
        assert_eq!(hosts("redis://localhost"), ["localhost:6379"]);
        assert_eq!(hosts("redis://h:7000/3"), ["h:7000"]);
        assert_eq!(hosts("redis://u:p@a:1,b:2,[::1]:3"), ["a:1", "b:2", "[::1]:3"]);
        assert_eq!(RedisUrl::parse("redis://h/3").unwrap().db, 3);
    }

    #[test]
    fn passwords_are_decoded() {
        for (url, user, password) in [
            ("redis://:p%40ss%2F%3A@h", None, Some("p@ss/:")),
            ("redis://u:p@h", Some("u"), Some("p")),
            ("redis://u:p,q@r@h,i", Some("u"), Some("p,q@r")),
            ("redis://h", None, None),
        ] {
            let parsed = RedisUrl::parse(url).unwrap();
            assert_eq!(parsed.login.username(), user, "{url}");
            assert_eq!(parsed.login.password(), password, "{url}");
        }
    }

    #[test]
    fn sentinels_have_a_service_and_a_port_of_their_own() {
        for (url, service, seeds, db) in [
            ("redis+sentinel://a/main", "main", vec!["a:26379"], 0),
            (
                "redis+sentinel://u:p@a,b:7,[::1],[::2]:8/my.main_1-x/3",
                "my.main_1-x",
                vec!["a:26379", "b:7", "[::1]:26379", "[::2]:8"],
                3,
            ),
            ("redis+sentinel://:p%40@a/main/", "main", vec!["a:26379"], 0),
        ] {
            let parsed = RedisUrl::parse(url).unwrap();
            assert_eq!(parsed.service.as_deref(), Some(service), "{url}");
            assert_eq!(hosts(url), seeds, "{url}");
            assert_eq!((parsed.db, parsed.sentinel_login().db()), (db, 0), "{url}");
            assert!(parsed.is_sentinel(&parsed.seeds[0]), "{url}");
        }
        let plain = RedisUrl::parse("redis://a").unwrap();
        assert!(plain.service.is_none() && !plain.is_sentinel(&plain.seeds[0]));
    }

    #[test]
    fn errors_do_not_repeat_the_password() {
        for url in [
            "secret",
            "http://u:secret@h",
            "redis://u:secret@h:port",
            "redis://u:secret@h/db",
            "redis://u:secret@h?protocol=resp2",
            "redis://u:secret@a,redis://u:secret@b",
            "redis://u:sec/ret@h",
            "redis://",
            "redis+sentinel://u:secret@h",
            "redis+sentinel://u:secret@h/a secret",
            "redis+sentinel://u:sec/ret@h/main/x",
        ] {
            let error = RedisUrl::parse(url).map(|_| ()).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{url}: {error}");
            assert!(error.text.contains("redis://[user"), "{url}: {error}");
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (url, part) in [
            ("127.0.0.1:6379", "no `://`"),
            ("http://h", "its scheme"),
            ("redis://", "names no host"),
            ("redis://:6379", "names no host"),
            ("redis://u:p@", "names no host"),
            ("redis://a,,b", "names no host"),
            ("redis://h:99999", "from 1 to 65535"),
            ("redis://h:0", "from 1 to 65535"),
            ("redis://[::1]:x", "from 1 to 65535"),
            ("redis://h/abc", "`/` is not a number"),
            ("redis://h/-1", "`/` is not a number"),
            ("redis://a,b/1", "no database but 0"),
            ("redis+sentinel://h", "names no service"),
            ("redis+sentinel://h//1", "names no service"),
            ("redis+sentinel://h/a b", "the service has other characters"),
            ("redis+sentinel://h/main/x", "`/` is not a number"),
            ("redis+sentinel:///main", "names no host"),
            ("redis+sentinel://h:0/main", "from 1 to 65535"),
            ("sentinel://h/main", "its scheme"),
        ] {
            let error = RedisUrl::parse(url).map(|_| ()).unwrap_err();
            assert!(error.text.contains(part), "{url}: {error}");
        }
        for url in ["redis://h/", "redis://[::1]", "redis://[::1]:7000/15", "redis://a,b/0"] {
            assert!(RedisUrl::parse(url).is_ok(), "{url}");
        }
    }

    #[test]
    #[cfg(not(feature = "tls"))]
    fn tls_is_refused_without_the_feature() {
        for url in ["rediss://h", "rediss+sentinel://h/main"] {
            let error = RedisUrl::parse(url).map(|_| ()).unwrap_err();
            assert!(error.text.contains("feature `tls`"), "{error}");
        }
    }

    #[test]
    fn addresses_are_read_as_nodes_write_them() {
        let asked = Address { host: "asked".into(), port: 1 };
        let parsed = |text| Address::parse(text, &asked).map(|address| address.to_string());
        assert_eq!(parsed("10.0.0.1:7000").as_deref(), Some("10.0.0.1:7000"));
        assert_eq!(parsed(":7000").as_deref(), Some("asked:7000"));
        assert_eq!(parsed("?:7000").as_deref(), Some("asked:7000"));
        assert_eq!(parsed("::1:7000").as_deref(), Some("[::1]:7000"));
        assert_eq!(parsed("host"), None);
    }
}
