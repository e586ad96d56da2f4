//! The host of the Redis backend: a real server that goes with the case, and a clock that moves
//! when it is told to.

use std::sync::Arc;

use dormouse_core::backend::Backend;
use dormouse_redis::{ManualClock, Options, RedisBackend};

use super::subject::{Host, Subject};
use crate::harness::redis::{RedisConfig, RedisServer};

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
        Subject::new(RedisHost::new(false))
    }

    /// The same, with another Dormouse wherever a case allows it: all comes from Redis.
    pub fn redis_reopened() -> Subject {
        Subject::new(RedisHost::new(true))
    }
}

struct RedisHost {
    backend: Arc<RedisBackend>,
    clock: ManualClock,
    reopens: bool,
    // Last, so that the backend has ended before its server goes.
    server: RedisServer,
}

impl RedisHost {
    fn new(reopens: bool) -> RedisHost {
        let server = RedisServer::start(RedisConfig::default());
        let clock = ManualClock::new(START_MS);
        let backend = open(&server, &clock);
        RedisHost { backend, clock, reopens, server }
    }
}

fn open(server: &RedisServer, clock: &ManualClock) -> Arc<RedisBackend> {
    let options = Options { clock: Some(clock.clone()), ..Options::default() };
    let opened = RedisBackend::open(&server.url(), options);
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
        self.backend = open(&self.server, &self.clock);
        true
    }

    fn reopens_often(&self) -> bool {
        self.reopens
    }
}
