//! A primary and its replicas, watched by sentinels.

use std::time::{Duration, Instant};

use crate::harness::redis::config::RedisConfig;
use crate::harness::redis::server::RedisServer;
use crate::harness::redis::wait::until;

/// The name of the service: a primary and its replicas.
pub const SERVICE: &str = "main";
/// A server that does not answer for this long is down: short for tests, and long enough for a busy
/// machine.
const DOWN_AFTER: Duration = Duration::from_millis(1500);
/// A failover that does not succeed is tried again after twice this time.
const FAILOVER_TIMEOUT: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(60);

/// Servers and sentinels on this machine. The first server is the primary of the beginning.
#[derive(Debug)]
pub struct SentinelRig {
    servers: Vec<RedisServer>,
    sentinels: Vec<RedisServer>,
    /// The servers that were killed.
    away: Vec<bool>,
}

impl SentinelRig {
    /// Starts them, and waits until all know each other and the replicas are in sync.
    pub fn start(replicas: usize, sentinels: usize) -> SentinelRig {
        SentinelRig::with(replicas, sentinels, &RedisConfig::default())
    }

    /// The same with other options for all of them.
    pub fn with(replicas: usize, sentinels: usize, config: &RedisConfig) -> SentinelRig {
        let start =
            |sentinel, extra| RedisServer::start(RedisConfig { extra, sentinel, ..config.clone() });
        let primary = start(false, Vec::new());
        let copies = format!("replicaof {} {}", primary.host(), primary.port());
        let mut servers = vec![primary];
        servers.extend((0..replicas).map(|_| start(false, vec![copies.clone()])));
        let lines = watch(&servers[0], sentinels / 2 + 1);
        let sentinels: Vec<_> = (0..sentinels).map(|_| start(true, lines.clone())).collect();
        let away = vec![false; servers.len()];
        let rig = SentinelRig { servers, sentinels, away };
        rig.await_whole();
        rig
    }

    /// `redis+sentinel://` with all sentinels, and the service.
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.sentinels.iter().map(RedisServer::address).collect();
        format!("redis+sentinel://{}/{SERVICE}", addresses.join(","))
    }

    /// All servers, also those that were killed.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// All sentinels.
    pub fn sentinels(&mut self) -> &mut [RedisServer] {
        &mut self.sentinels
    }

    /// The server that a sentinel calls the primary.
    pub fn primary(&self, sentinel: usize) -> Result<usize, String> {
        let words = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE];
        let reply = self.sentinels[sentinel].try_command(&words);
        let reply = reply.map_err(|error| format!("sentinel {sentinel}: {error}"))?;
        if let Some(text) = reply.error() {
            return Err(format!("sentinel {sentinel}: {text}"));
        }
        let port = reply.list()[1].text();
        let found = self.servers.iter().position(|server| server.port().to_string() == port);
        found.ok_or_else(|| format!("sentinel {sentinel} names port {port}"))
    }

    /// kill -9 of a server.
    pub fn kill(&mut self, server: usize) {
        self.away[server] = true;
        self.servers[server].kill_nine();
    }

    /// SIGSTOP to a server.
    pub fn freeze(&mut self, server: usize) {
        self.away[server] = true;
        self.servers[server].freeze();
    }

    /// SIGCONT to a server.
    pub fn thaw(&mut self, server: usize) {
        self.servers[server].thaw();
        self.away[server] = false;
    }

    /// Starts a server again, without its data; sentinels make it a replica.
    pub fn restart(&mut self, server: usize) {
        self.servers[server].restart();
        self.away[server] = false;
    }

    /// Waits until all sentinels name the same living server, which is a primary. How long that was
    /// since this instant.
    pub fn await_failover(&self, since: Instant) -> Duration {
        until("a failover", TIMEOUT, || {
            let named = self.agreed()?;
            match self.away[named] {
                true => Err(format!("the sentinels name server {named}, which is away")),
                false => self.check_role(named, "master"),
            }
        });
        since.elapsed()
    }

    /// Waits until no server is away, all others copy the primary and are in sync, and all
    /// sentinels know all of them and each other.
    pub fn await_whole(&self) {
        until("servers and sentinels that know each other", TIMEOUT, || {
            let primary = self.agreed()?;
            for number in 0..self.servers.len() {
                self.check_role(number, if number == primary { "master" } else { "slave" })?;
            }
            let replicas = self.servers.len() - 1;
            let info = self.servers[primary].info_all("replication");
            let online = info.values().filter(|value| value.contains("state=online")).count();
            if online < replicas {
                return Err(format!("{online} of {replicas} replicas are in sync: {info:?}"));
            }
            (0..self.sentinels.len()).try_for_each(|number| self.check_sentinel(number))
        });
    }

    fn agreed(&self) -> Result<usize, String> {
        let first = self.primary(0)?;
        for sentinel in 1..self.sentinels.len() {
            let named = self.primary(sentinel)?;
            if named != first {
                return Err(format!("sentinel 0 names {first}, sentinel {sentinel} {named}"));
            }
        }
        Ok(first)
    }

    fn check_role(&self, server: usize, wanted: &str) -> Result<(), String> {
        let reply = self.servers[server].try_command(&["ROLE"]);
        let reply = reply.map_err(|error| format!("server {server}: {error}"))?;
        match reply.list().first() {
            Some(role) if role.text() == wanted => Ok(()),
            _ => Err(format!("server {server} is not a {wanted}: {reply:?}")),
        }
    }

    fn check_sentinel(&self, number: usize) -> Result<(), String> {
        let state = self.sentinels[number].must(&["SENTINEL", "MASTER", SERVICE]);
        let words: Vec<String> = state.list().iter().map(|word| word.text()).collect();
        let field = |name: &str| {
            let pair = words.chunks(2).find(|pair| pair[0] == name);
            pair.map_or("", |pair| pair[1].as_str())
        };
        let known = ["num-slaves", "num-other-sentinels", "flags"].map(field);
        let (replicas, others) = (self.servers.len() - 1, self.sentinels.len() - 1);
        let expected = [&replicas.to_string(), &others.to_string(), "master"];
        match known == expected {
            true => Ok(()),
            false => Err(format!("sentinel {number} knows {known:?}, not {expected:?}")),
        }
    }
}

fn watch(primary: &RedisServer, quorum: usize) -> Vec<String> {
    let (host, port) = (primary.host(), primary.port());
    vec![
        format!("sentinel monitor {SERVICE} {host} {port} {quorum}"),
        format!("sentinel down-after-milliseconds {SERVICE} {}", DOWN_AFTER.as_millis()),
        format!("sentinel failover-timeout {SERVICE} {}", FAILOVER_TIMEOUT.as_millis()),
        format!("sentinel parallel-syncs {SERVICE} 4"),
    ]
}
