//! How a server is to be.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// The append-only file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Append {
    /// Nothing is kept when the server ends.
    #[default]
    Off,
    /// Synced each second: kill -9 loses nothing, a power cut a second.
    EverySec,
    /// Synced before each answer.
    Always,
}

/// Options of a server; the default is a single server that persists nothing.
#[derive(Clone, Debug)]
pub struct RedisConfig {
    /// The append-only file.
    pub append: Append,
    /// Bytes; beyond them writes are refused, nothing is evicted.
    pub maxmemory: Option<u64>,
    /// A node of a cluster.
    pub cluster: bool,
    /// A sentinel; `extra` has what it watches, the other options have no effect.
    pub sentinel: bool,
    /// Only by TLS, to clients, replicas and sentinels: a directory with `cert.pem`, `key.pem` and
    /// `ca.pem`.
    pub tls: Option<PathBuf>,
    /// More lines of the configuration; they win over the others.
    pub extra: Vec<String>,
    /// Where it listens.
    pub address: Ipv4Addr,
    /// A process in whose network namespace it runs; without, in this process' one.
    pub network_of: Option<u32>,
    /// A program, with its words, that runs the server in its own place.
    pub under: Vec<String>,
}

impl Default for RedisConfig {
    fn default() -> RedisConfig {
        RedisConfig {
            append: Append::Off,
            maxmemory: None,
            cluster: false,
            sentinel: false,
            tls: None,
            extra: Vec::new(),
            address: Ipv4Addr::LOCALHOST,
            network_of: None,
            under: Vec::new(),
        }
    }
}

impl RedisConfig {
    /// The text of the configuration's file.
    pub(crate) fn lines(&self, port: u16, dir: &Path, socket: &Path) -> String {
        let (append, sync) = match self.append {
            Append::Off => ("no", "everysec"),
            Append::EverySec => ("yes", "everysec"),
            Append::Always => ("yes", "always"),
        };
        if self.sentinel {
            return self.sentinel_lines(port, dir, socket);
        }
        let mut lines = vec![
            format!("bind {}", self.address),
            format!("dir {}", dir.display()),
            format!("unixsocket {}", socket.display()),
            // Other addresses than the loopback are in namespaces that only the rig reaches.
            "protected-mode no".to_owned(),
            "save \"\"".to_owned(),
            format!("appendonly {append}"),
            format!("appendfsync {sync}"),
            format!("maxmemory {}", self.maxmemory.unwrap_or(0)),
            "maxmemory-policy noeviction".to_owned(),
            // A replica is in sync at once, not after the five seconds others get to join.
            "repl-diskless-sync-delay 0".to_owned(),
            "repl-ping-replica-period 1".to_owned(),
        ];
        if self.cluster {
            lines.push("cluster-enabled yes".to_owned());
        }
        lines.extend(self.port_lines(port));
        lines.extend_from_slice(&self.extra);
        lines.join("\n") + "\n"
    }

    fn sentinel_lines(&self, port: u16, dir: &Path, socket: &Path) -> String {
        let mut lines = vec![
            format!("bind {}", self.address),
            format!("dir {}", dir.display()),
            format!("unixsocket {}", socket.display()),
            "protected-mode no".to_owned(),
        ];
        lines.extend(self.port_lines(port));
        lines.extend_from_slice(&self.extra);
        lines.join("\n") + "\n"
    }

    fn port_lines(&self, port: u16) -> Vec<String> {
        let Some(dir) = &self.tls else { return vec![format!("port {port}")] };
        let file = |name: &str| dir.join(name).display().to_string();
        vec![
            "port 0".to_owned(),
            format!("tls-port {port}"),
            format!("tls-cert-file {}", file("cert.pem")),
            format!("tls-key-file {}", file("key.pem")),
            format!("tls-ca-cert-file {}", file("ca.pem")),
            "tls-auth-clients no".to_owned(),
            "tls-replication yes".to_owned(),
        ]
    }
}
