//! The host of the Redis backend: a real server that goes with the case, or a real cluster that
//! the cases of a verb share, and a clock that moves when it is told to.

use std::sync::Arc;

use dormouse_core::backend::Backend;
use dormouse_redis::{ManualClock, Options, RedisBackend};

use super::SUITE;
use super::subject::{Host, Subject};
use crate::harness::redis::{RedisCluster, RedisConfig, RedisServer};

/// 2026-01-01T00:00:00Z.
const START_MS: u64 = 1_767_225_600_000;

/// The cases that cannot work on Redis, and why.
pub const NOT_ON_REDIS: &[(&str, &str, &str)] = &[
    ("put", "ids_grow", "ids grow within a partition; the partition is in their high bits"),
    (
        "reserve",
        "leases_go_on_after_a_restart_with_their_full_time",
        "leases live in Redis: they go on whether a server restarts or not",
    ),
    (
        "reserve",
        "several_topics_give_in_one_order",
        "ids of different topics do not tell which was put first",
    ),
    (
        "session",
        "leases_of_sessions_are_released_by_a_restart",
        "a server that ended tells nobody; its leases run out",
    ),
];

/// Why this case is not run on Redis, if it is not.
pub fn not_on_redis(verb: &str, case: &str) -> Option<&'static str> {
    let skipped =
        NOT_ON_REDIS.iter().find(|(its_verb, its_case, _)| *its_verb == verb && *its_case == case);
    skipped.map(|(.., reason)| *reason)
}

impl Subject {
    /// On a Redis of its own.
    pub fn redis() -> Subject {
        Subject::new(RedisHost::alone(false))
    }

    /// The same, with another Dormouse wherever a case allows it: all comes from Redis.
    pub fn redis_reopened() -> Subject {
        Subject::new(RedisHost::alone(true))
    }

    /// On a cluster without data, with another Dormouse wherever a case allows it.
    fn redis_cluster(cluster: &Arc<RedisCluster>) -> Subject {
        Subject::new(RedisHost::new(Servers::Cluster(cluster.clone()), true))
    }
}

/// Runs every case of a verb on one cluster of three primaries, each case on an empty one, and
/// names those that failed. To start a cluster takes seconds, so the cases share it.
pub fn run_on_cluster(verb: &str) {
    let cluster = Arc::new(RedisCluster::start(3, 0));
    let (_, cases) = SUITE.iter().find(|(name, _)| *name == verb).expect("a verb of the suite");
    let mut failed = Vec::new();
    for (case, run) in cases.iter().filter(|(case, _)| not_on_redis(verb, case).is_none()) {
        for node in cluster.nodes() {
            node.must(&["FLUSHALL"]);
        }
        let subject = std::panic::AssertUnwindSafe(|| run(&mut Subject::redis_cluster(&cluster)));
        if std::panic::catch_unwind(subject).is_err() {
            failed.push(*case);
        }
    }
    assert_eq!(failed, [""; 0], "cases of {verb} that fail on a cluster; see above");
}

/// What the backend runs on.
enum Servers {
    Alone(RedisServer),
    Cluster(Arc<RedisCluster>),
}

impl Servers {
    fn url(&self) -> String {
        match self {
            Servers::Alone(server) => server.url(),
            Servers::Cluster(cluster) => cluster.url(),
        }
    }
}

struct RedisHost {
    backend: Arc<RedisBackend>,
    clock: ManualClock,
    reopens: bool,
    // Last, so that the backend has ended before its server goes.
    servers: Servers,
}

impl RedisHost {
    fn alone(reopens: bool) -> RedisHost {
        RedisHost::new(Servers::Alone(RedisServer::start(RedisConfig::default())), reopens)
    }

    fn new(servers: Servers, reopens: bool) -> RedisHost {
        let clock = ManualClock::new(START_MS);
        let backend = open(&servers, &clock);
        RedisHost { backend, clock, reopens, servers }
    }
}

/// The cluster outlives its hosts: without this, a Dormouse of the case before would go on
/// writing to it.
impl Drop for RedisHost {
    fn drop(&mut self) {
        self.backend.close();
    }
}

fn open(servers: &Servers, clock: &ManualClock) -> Arc<RedisBackend> {
    let options = Options { clock: Some(clock.clone()), ..Options::default() };
    let opened = RedisBackend::open(&servers.url(), options);
    Arc::new(opened.unwrap_or_else(|error| panic!("the backend does not open: {error}")))
}

impl Host for RedisHost {
    fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone()
    }

    fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    fn advance(&self, ms: u64) {
        self.clock.advance(ms);
    }

    fn step_wall_ms(&self, _by_ms: i64) -> bool {
        false
    }

    fn reopen(&mut self, off_ms: u64) -> bool {
        self.backend.close();
        self.clock.advance(off_ms);
        self.backend = open(&self.servers, &self.clock);
        true
    }

    fn reopens_often(&self) -> bool {
        self.reopens
    }
}
