//! All settings, with their types and defaults.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use dormouse_core::topic::TopicName;
use dormouse_disk::engine::Durability;
use dormouse_redis::Level;
use dormouse_server::access::TokenEntry;
use dormouse_server::limits::BEANSTALK_JOB_BYTES_MAX_DEFAULT;
use dormouse_server::{BeanstalkAddr, UiOptions};
use tracing::level_filters::LevelFilter;

use crate::log_line::LogFormat;

/// Port of the HTTP interface unless set.
pub(crate) const HTTP_PORT: u16 = 7788;
/// Port of the interface for Redis clients unless set.
pub(super) const RESP_PORT: u16 = 7789;
/// The default address of beanstalkd's protocol, if it is on.
pub(super) const BEANSTALK_ADDR: &str = "127.0.0.1:11300";
/// Longest time between two syncs that `relaxed` may ask for.
pub(super) const RELAXED_MS_MAX: u64 = 60_000;
/// Connections at once, at most.
pub(super) const CONNECTIONS_MAX: u64 = 1_000_000;
/// Pushes at once, at most.
pub(super) const PUSH_CONNECTIONS_MAX: u64 = 100_000;
/// Smallest and largest memtable and segment of a store.
pub(super) const STORE_BYTES: (u64, u64) = (16 << 10, 1 << 30);
/// Longest span a stop may take.
pub(super) const DRAIN_MS_MAX: u64 = 3_600_000;

/// Everything that can be set for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Where the disk backend keeps its files.
    pub(crate) data: PathBuf,
    /// Where HTTP is served; `None` = off.
    pub(crate) http: Option<SocketAddr>,
    /// Where the protocol of Redis clients is served; `None` = off.
    pub(crate) resp: Option<SocketAddr>,
    /// Where beanstalkd's protocol is served; `None` = off.
    pub(crate) beanstalk: Option<BeanstalkAddr>,
    /// beanstalkd's protocol on other addresses than loopback, though it knows no tokens.
    pub(crate) beanstalk_open: bool,
    /// Largest body that clients of beanstalkd may put.
    pub(crate) beanstalk_job_bytes_max: usize,
    /// The failures that an answered change survives.
    pub(crate) durability: Durability,
    /// Where jobs are kept.
    pub(crate) backend: BackendKind,
    /// Where Redis is.
    pub(crate) redis_url: Option<String>,
    /// The failures that an answered change survives on Redis.
    pub(crate) redis_level: Option<Level>,
    /// Partitions of new topics on Redis.
    pub(crate) redis_partitions: Option<u16>,
    /// Other addresses than loopback without a token.
    pub(crate) insecure: bool,
    /// A clock that stands still until a client moves it.
    pub(crate) test_clock: bool,
    /// Refuse to start where others can read or change what is this server's.
    pub(crate) strict: bool,
    /// Accepted names in the Host header, in addition to loopback and the bound address.
    pub(crate) hosts: Vec<String>,
    /// The web console.
    pub(crate) ui: UiOptions,
    /// Topics that always have series of their own in the metrics.
    pub(crate) metrics_topics: Vec<TopicName>,
    /// Connections at once.
    pub(crate) connections_max: usize,
    /// The longest ttr and lock ttl of clients that are not operators.
    pub(crate) ttr_max: Duration,
    /// How long a stop waits for requests.
    pub(crate) drain: Duration,
    /// The log level.
    pub(crate) log: LevelFilter,
    /// How the log is written.
    pub(crate) log_format: LogFormat,
    /// PEM file of the certificate chain.
    pub(crate) tls_cert: Option<PathBuf>,
    /// PEM file of the private key.
    pub(crate) tls_key: Option<PathBuf>,
    /// Deliveries to URLs.
    pub(crate) push: PushSettings,
    /// Sizes that shape the store, where they are not the usual ones.
    pub(crate) memtable_bytes: Option<u64>,
    /// See above.
    pub(crate) segment_bytes: Option<u64>,
    /// The access tokens; without any, everybody may do everything.
    pub(crate) tokens: Vec<TokenEntry>,
}

/// How jobs are delivered to URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PushSettings {
    /// Whether they are at all.
    pub(crate) is_on: bool,
    /// The file with the master key; `None` = the one beside the store.
    pub(crate) key: Option<PathBuf>,
    /// Ranges, addresses and names that are allowed besides the internet, as they were given.
    pub(crate) allow: Vec<String>,
    /// Ports and ranges of ports, as they were given; none = the usual ones.
    pub(crate) ports: Vec<String>,
    /// Authorities besides those of the system.
    pub(crate) ca_file: Option<PathBuf>,
    /// Plain HTTP is allowed.
    pub(crate) http: bool,
    /// Deliveries at once, if not the usual number.
    pub(crate) connections_max: Option<usize>,
}

/// Where jobs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackendKind {
    /// In files.
    Disk,
    /// In memory, gone with the process.
    Memory,
    /// In a Redis or Redis Cluster, shared with other servers.
    Redis,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            data: PathBuf::from("./dormouse-data"),
            http: Some(SocketAddr::from(([127, 0, 0, 1], HTTP_PORT))),
            resp: Some(SocketAddr::from(([127, 0, 0, 1], RESP_PORT))),
            beanstalk: None,
            beanstalk_open: false,
            beanstalk_job_bytes_max: BEANSTALK_JOB_BYTES_MAX_DEFAULT,
            durability: Durability::Synced,
            backend: BackendKind::Disk,
            redis_url: None,
            redis_level: None,
            redis_partitions: None,
            insecure: false,
            test_clock: false,
            strict: false,
            hosts: Vec::new(),
            ui: UiOptions::default(),
            metrics_topics: Vec::new(),
            connections_max: 10_000,
            ttr_max: Duration::from_secs(24 * 3_600),
            drain: Duration::from_secs(10),
            log: LevelFilter::INFO,
            log_format: LogFormat::Text,
            tls_cert: None,
            tls_key: None,
            push: PushSettings::default(),
            memtable_bytes: None,
            segment_bytes: None,
            tokens: Vec::new(),
        }
    }
}

impl Settings {
    /// Refuses contradictory or dangerous settings; the text names the fix.
    pub(super) fn verify(&self) -> Result<(), String> {
        self.verify_addresses()?;
        self.verify_redis()?;
        self.verify_push()?;
        self.verify_tls()
    }

    fn verify_push(&self) -> Result<(), String> {
        let push = &self.push;
        let set = [
            ("push.key", push.key.is_some()),
            ("push.allow", !push.allow.is_empty()),
            ("push.ports", !push.ports.is_empty()),
            ("push.ca_file", push.ca_file.is_some()),
            ("push.http", push.http),
            ("push.connections_max", push.connections_max.is_some()),
        ];
        match set.iter().find(|(_, is_set)| *is_set) {
            Some((name, _)) if !push.is_on => {
                Err(format!("`{name}` is set, but nothing is pushed; say so with --push"))
            }
            _ if push.is_on && push.key.is_none() && self.backend == BackendKind::Redis => {
                Err("`push.key` is not set: all servers on one Redis need the same key; make one \
                     with `openssl rand -hex 32 > push.key`, and give the file to each"
                    .to_owned())
            }
            _ => Ok(()),
        }
    }

    fn verify_redis(&self) -> Result<(), String> {
        let is_redis = self.backend == BackendKind::Redis;
        if is_redis && self.redis_url.is_none() {
            return Err("`backend` is redis and `redis.url` is not set; give it, as in \
                        --redis-url redis://127.0.0.1:6379"
                .to_owned());
        }
        let set = [
            ("redis.url", self.redis_url.is_some()),
            ("redis.level", self.redis_level.is_some()),
            ("redis.partitions", self.redis_partitions.is_some()),
        ];
        match set.iter().find(|(_, is_set)| *is_set) {
            Some((name, _)) if !is_redis => Err(format!(
                "`{name}` is set, but jobs are not kept in Redis; say so with --backend redis"
            )),
            _ => Ok(()),
        }
    }

    fn verify_tls(&self) -> Result<(), String> {
        match (&self.tls_cert, &self.tls_key) {
            (None, None) => Ok(()),
            (Some(_), None) => Err("`tls.cert` is set and `tls.key` is not".to_owned()),
            (None, Some(_)) => Err("`tls.key` is set and `tls.cert` is not".to_owned()),
            (Some(_), Some(_)) => Ok(()),
        }
    }

    /// Whether the files of `tls.cert` and `tls.key` hold a certificate and its key. They change
    /// apart from the configuration, so `verify` leaves them out.
    pub(crate) fn verify_certificate(&self) -> Result<(), String> {
        let (Some(cert), Some(key)) = (self.tls_cert.clone(), self.tls_key.clone()) else {
            return Ok(());
        };
        let loaded = dormouse_server::Tls::load(dormouse_server::TlsFiles { cert, key });
        loaded.map(|_| ()).map_err(|error| format!("`tls.cert` and `tls.key`: {error}"))
    }

    /// Warnings about settings that are allowed but risky.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.address_warnings();
        if self.backend == BackendKind::Memory {
            warnings.push("backend memory: all jobs are gone when this process ends".to_owned());
        }
        warnings
    }
}
