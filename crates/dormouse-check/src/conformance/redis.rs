//! The host of the Redis backend: a real server that goes with the case, or a real cluster that
//! the cases of a verb share, and a clock that moves when it is told to.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::op::Stats;
use dormouse_core::topic::TopicName;
use dormouse_redis::{ManualClock, Options, RedisBackend};

use super::SUITE;
use super::client::Client;
use super::served::{Skips, reason};
use super::subject::{Host, Subject};
use crate::harness::redis::{RedisCluster, RedisConfig, RedisServer};

/// 2026-01-01T00:00:00Z.
const START_MS: u64 = 1_767_225_600_000;

/// Longer than a reserve takes to be parked on a busy machine.
const PARK_MAX: Duration = Duration::from_secs(10);

/// The cases that cannot work on Redis, and why; `*` = all of the verb.
pub const NOT_ON_REDIS: Skips = &[
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
    ("limits", &[]),
    // Each partition has its share of concurrency.
    ("push", &[]),
    ("pushes", &[]),
    // Those who wait are served in order by each partition.
    ("reserve_wait", &[]),
    ("revive", &["all_of_a_topic"]),
    (
        "chain",
        &[
            "a_full_topic_refuses_everything",
            "the_next_job_may_have_the_room_of_the_acked_one",
            "a_lapsed_job_makes_room_once",
        ],
    ),
    ("dead_letters", &["a_full_dead_topic_leaves_the_job_dead"]),
    ("done", &["list_gives_it_by_age", "pages_of_done_jobs", "it_needs_no_room"]),
    ("change_schedule", &["a_replan_gives_up_what_was_to_be_given"]),
    (
        "put_schedule",
        &[
            "a_full_topic_loses_no_tick",
            "one_that_does_not_fit_holds_up_no_other",
            "a_full_topic_does_not_keep_a_job_from_being_replaced",
        ],
    ),
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
    reason(NOT_ON_REDIS, verb, case)
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
    Alone(Box<RedisServer>),
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

/// The backend, but a reserve that may wait is parked, or answered, when `submit` returns. On Redis
/// a later command may overtake a reserve that still looks up its topic or polls its partitions; a
/// case takes it for granted that a reserve it sent before is in its place.
struct ParkedFirst {
    backend: Arc<RedisBackend>,
    waiting: Arc<WaitingReserves>,
}

/// The topics of the reserves that are not answered yet.
#[derive(Default)]
struct WaitingReserves(Mutex<BTreeMap<Ticket, Vec<TopicName>>>);

impl WaitingReserves {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Ticket, Vec<TopicName>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many wait for jobs of this topic.
    fn on(&self, topic: &TopicName) -> u64 {
        self.lock().values().filter(|topics| topics.contains(topic)).count() as u64
    }
}

impl ParkedFirst {
    fn new(backend: RedisBackend) -> ParkedFirst {
        ParkedFirst { backend: Arc::new(backend), waiting: Arc::default() }
    }

    /// Waits until the backend says that the reserve waits. If it never does, the case fails by
    /// itself.
    fn wait_until_parked(&self, ticket: Ticket, topics: &[TopicName]) {
        let client = Client::new(self.backend.clone());
        let began = Instant::now();
        for topic in topics {
            while began.elapsed() < PARK_MAX && self.waiting.lock().contains_key(&ticket) {
                // Counted first: one that is answered meanwhile only leads to another round.
                let expected = self.waiting.on(topic);
                let stats = client.ask(Command::Stats(Stats { topic: Some(topic.clone()) }));
                if matches!(stats, Ok(Reply::Stats(stats)) if stats.waiters >= expected) {
                    break;
                }
            }
        }
    }
}

impl Backend for ParkedFirst {
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        let blocking = batch.iter().filter_map(|request| match &request.command {
            Command::Reserve(reserve) if reserve.wait_ms > 0 => {
                Some((request.ticket, reserve.distinct_topics()))
            }
            _ => None,
        });
        let blocking: Vec<(Ticket, Vec<TopicName>)> = blocking.collect();
        self.waiting.lock().extend(blocking.iter().cloned());
        let sink = Arc::new(ParkedSink { waiting: Arc::clone(&self.waiting), sink });
        self.backend.submit(batch, sink)?;
        blocking.iter().for_each(|(ticket, topics)| self.wait_until_parked(*ticket, topics));
        Ok(())
    }
}

/// Notes which reserves are answered.
struct ParkedSink {
    waiting: Arc<WaitingReserves>,
    sink: Arc<dyn Sink>,
}

impl Sink for ParkedSink {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        let mut waiting = self.waiting.lock();
        for (ticket, _) in answers.iter() {
            waiting.remove(ticket);
        }
        drop(waiting);
        self.sink.deliver(answers);
    }
}

struct RedisHost {
    backend: Arc<ParkedFirst>,
    clock: ManualClock,
    partitions: Option<u16>,
    reopens: bool,
    // Last, so that the backend has ended before its server goes.
    servers: Servers,
}

impl RedisHost {
    fn alone(reopens: bool) -> RedisHost {
        let server = Box::new(RedisServer::start(RedisConfig::default()));
        RedisHost::new(Servers::Alone(server), None, reopens)
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
        self.backend.backend.close();
    }
}

fn open(servers: &Servers, clock: &ManualClock, partitions: Option<u16>) -> Arc<ParkedFirst> {
    let options = Options { clock: Some(clock.clone()), partitions, ..Options::default() };
    let opened = RedisBackend::open(&servers.url(), options);
    let backend = opened.unwrap_or_else(|error| panic!("the backend does not open: {error}"));
    Arc::new(ParkedFirst::new(backend))
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
        self.backend.backend.close();
        self.clock.advance(off_ms);
        self.backend = open(&self.servers, &self.clock, self.partitions);
        true
    }

    fn reopens_often(&self) -> bool {
        self.reopens
    }
}
