//! The host of the Redis backend: a real server that goes with the case, or a real cluster that
//! the cases of a verb share, and a clock that moves when it is told to.

use std::panic::{AssertUnwindSafe, catch_unwind};
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

/// Cases about the order within a topic, or about limits of a topic. Order holds within a
/// partition, and each partition keeps its share of a limit, so on a cluster these cases are run
/// with one partition per topic, all others with as many as usual. No case = all of that verb.
const IN_ONE_PARTITION: &[(&str, &[&str])] = &[
    ("ack", &["a_token_is_of_one_job"]),
    ("cancel", &["any_of_many"]),
    ("kick", &["the_earliest_are_ready_now", "at_most_a_batch_at_once"]),
    (
        "list",
        &[
            "waiting_jobs_by_priority_then_due",
            "dead_jobs_by_age",
            "the_last_page_has_no_cursor",
            "pages_give_each_of_many_once",
            "pages_of_every_state",
            "pages_go_on_through_changes",
            "pages_go_on_through_restarts",
            "a_page_is_bounded_in_bytes",
            "large_jobs_of_every_state_are_listed_once",
        ],
    ),
    ("liveness", &["many_consumers_get_everything"]),
    ("nack", &["sets_the_priority"]),
    ("put", &["many_jobs_rest_and_come_back_once"]),
    ("release", &["stands_in_line_from_now"]),
    ("reschedule", &["moves_in_line", "any_of_many"]),
    (
        "reserve",
        &[
            "a_topic_gives_by_priority_then_due_then_id",
            "absolute_and_relative_times_give_in_one_order",
            "order_holds_over_many_jobs",
        ],
    ),
    // Those who wait are served in order by each partition.
    ("reserve_wait", &[]),
    ("revive", &["all_of_a_topic"]),
    (
        "set_topic",
        &[
            "jobs_max_makes_it_full",
            "jobs_in_every_state_count",
            "a_replace_is_no_more_jobs",
            "a_duplicate_is_no_more_jobs",
            "bytes_max_makes_it_full",
            "full_is_per_topic_and_per_item",
            "dead_max_keeps_the_newest",
            "dead_max_set_later_trims",
            "dead_ttl_removes_the_old",
        ],
    ),
];

/// How many partitions a topic has on a cluster in this case; `None` = as many as usual.
fn partitions(verb: &str, case: &str) -> Option<u16> {
    let cases = IN_ONE_PARTITION.iter().find(|(name, _)| *name == verb)?.1;
    (cases.is_empty() || cases.contains(&case)).then_some(1)
}

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
    fn redis_cluster(cluster: &Arc<RedisCluster>, partitions: Option<u16>) -> Subject {
        Subject::new(RedisHost::new(Servers::Cluster(cluster.clone()), partitions, true))
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
        let partitions = partitions(verb, case);
        let run = AssertUnwindSafe(|| run(&mut Subject::redis_cluster(&cluster, partitions)));
        if catch_unwind(run).is_err() {
            failed.push(*case);
        }
    }
    assert_eq!(failed, [""; 0], "cases of {verb} that fail on a cluster; see above");
}

/// The servers that the backend runs on.
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
    partitions: Option<u16>,
    reopens: bool,
    // Last, so that the backend has ended before its server goes.
    servers: Servers,
}

impl RedisHost {
    fn alone(reopens: bool) -> RedisHost {
        RedisHost::new(Servers::Alone(RedisServer::start(RedisConfig::default())), None, reopens)
    }

    fn new(servers: Servers, partitions: Option<u16>, reopens: bool) -> RedisHost {
        let clock = ManualClock::new(START_MS);
        let backend = open(&servers, &clock, partitions);
        RedisHost { backend, clock, partitions, reopens, servers }
    }
}

/// The cluster outlives its hosts: without this, a Dormouse of the case before would go on
/// writing to it.
impl Drop for RedisHost {
    fn drop(&mut self) {
        self.backend.close();
    }
}

fn open(servers: &Servers, clock: &ManualClock, partitions: Option<u16>) -> Arc<RedisBackend> {
    let options = Options { clock: Some(clock.clone()), partitions, ..Options::default() };
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
        self.backend = open(&self.servers, &self.clock, self.partitions);
        true
    }

    fn reopens_often(&self) -> bool {
        self.reopens
    }
}
