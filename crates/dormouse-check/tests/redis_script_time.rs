//! No script blocks Redis for long, however many jobs are due at once. `dormouse-bench redis`
//! measures the same with a million jobs.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::sync::Arc;
use std::time::Duration;

use dormouse_check::conformance::client::Client;
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::State;
use dormouse_core::limits::PAGE_MAX;
use dormouse_core::op::{Forecast, Kick, List, Peek, Put, Reserve, Stats};
use dormouse_core::topic::TopicName;
use dormouse_redis::limits::BATCH_JOBS_MAX;
use dormouse_redis::{Options, RedisBackend};

const JOBS: usize = 30_000;
/// Of Redis' processor time, with what the measurement itself costs.
const SCRIPT_MAX: Duration = Duration::from_millis(5);

struct Rig {
    client: Client,
    redis: RedisServer,
    topic: TopicName,
}

impl Rig {
    /// Asks, and checks how long Redis computed for a script on average.
    fn timed(&self, name: &str, command: Command) -> Reply {
        let (scripts, before) = (self.redis.scripts_run(), self.redis.cpu());
        let reply = self.client.ask(command).unwrap();
        let spent = self.redis.cpu().saturating_sub(before);
        let scripts = u32::try_from(self.redis.scripts_run() - scripts).unwrap().max(1);
        assert!(spent <= SCRIPT_MAX * scripts, "{name}: {spent:?} for {scripts} scripts");
        reply
    }

    fn reserve(&self) -> Vec<dormouse_core::op::LeasedJob> {
        let topics = vec![self.topic.clone()];
        let (max, wait_ms) = (BATCH_JOBS_MAX, 0);
        let reserve = Reserve { topics, max, wait_ms, ttr_ms: None, session: None };
        match self.timed("reserve", Command::Reserve(reserve)) {
            Reply::Jobs(jobs) => jobs,
            other => panic!("{other:?}"),
        }
    }
}

fn fill(rig: &Rig, at_ms: i64) {
    let put = |_| Put { at_ms: Some(at_ms), ..Put::new(rig.topic.clone(), "x".repeat(100)) };
    for _ in 0..JOBS / 1_000 {
        rig.timed("put", Command::Put((0..1_000).map(put).collect()));
    }
}

#[test]
fn a_herd_that_is_due_in_one_ms_makes_no_script_slow() {
    let redis = RedisServer::start(RedisConfig::default());
    let backend = RedisBackend::open(&redis.url(), Options::default()).unwrap();
    let topic = TopicName::new("herd").unwrap();
    let rig = Rig { client: Client::new(Arc::new(backend)), redis, topic };
    let topic = || rig.topic.clone();
    fill(&rig, 1_000_000);
    fill(&rig, 4_000_000_000_000);
    for _ in 0..50 {
        let jobs = rig.reserve();
        assert_eq!(jobs.len(), BATCH_JOBS_MAX);
        rig.timed("ack", Command::Ack(jobs.iter().map(|job| job.token).collect()));
    }
    rig.timed("stats", Command::Stats(Stats { topic: Some(topic()) }));
    for state in [State::Delayed, State::Ready, State::Leased, State::Dead] {
        rig.timed("peek", Command::Peek(Peek { topic: topic(), state }));
        let mut cursor = None;
        for _ in 0..3 {
            let list = List { topic: topic(), state, cursor, limit: PAGE_MAX };
            match rig.timed("list", Command::List(list)) {
                Reply::Page(page) => cursor = page.cursor,
                other => panic!("{other:?}"),
            }
            if cursor.is_none() {
                break;
            }
        }
    }
    let forecast = Forecast { topic: topic(), from_ms: 0, to_ms: 2_000_000, step_ms: 2_000 };
    rig.timed("forecast", Command::Forecast(forecast));
    rig.timed("kick", Command::Kick(Kick { topic: topic(), max: 1_000 }));
    rig.timed("purge", Command::Purge(topic()));
}
