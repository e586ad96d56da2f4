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
use dormouse_core::op::{Forecast, Kick, List, ListRange, Peek, Put, Reserve, SetTopic, Stats};
use dormouse_core::topic::{Settings, TopicName};
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
            let list = List {
                topic: topic(),
                state,
                cursor,
                limit: PAGE_MAX,
                range: ListRange::default(),
            };
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
    rig.timed("purge", Command::Purge(topic().into()));
}

/// Passing the jobs of a full group is work in portions, and so is taking them back.
#[test]
fn a_full_group_with_many_jobs_makes_no_script_slow() {
    let redis = RedisServer::start(RedisConfig::default());
    let backend = RedisBackend::open(&redis.url(), Options::default()).unwrap();
    let topic = TopicName::new("groups").unwrap();
    let rig = Rig { client: Client::new(Arc::new(backend)), redis, topic };
    let set = |group_leased_max| {
        let settings = Settings { group_leased_max, ..Settings::default() };
        rig.timed("set", Command::from(SetTopic { topic: rig.topic.clone(), settings }));
    };
    let put = |group: &'static str, at_ms| Put {
        group: Some(group.into()),
        at_ms: Some(at_ms),
        ..Put::new(rig.topic.clone(), "x".repeat(100))
    };
    // In the line before there is a limit: all of them have to be passed.
    for _ in 0..JOBS / 1_000 {
        rig.timed("put", Command::Put((0..1_000).map(|_| put("full", 1_000_000)).collect()));
    }
    set(Some(1));
    assert_eq!(rig.reserve().len(), 1);
    // These are parked as they come.
    for _ in 0..JOBS / 1_000 {
        rig.timed("put", Command::Put((0..1_000).map(|_| put("full", 1_000_000)).collect()));
    }
    rig.timed("put", Command::Put(vec![put("other", 2_000_000)]));
    let other = rig.reserve();
    assert_eq!(other.len(), 1);
    rig.timed("ack", Command::Ack(vec![other[0].token]));
    rig.timed("stats", Command::Stats(Stats { topic: Some(rig.topic.clone()) }));
    set(None);
    assert!(rig.reserve().len() >= BATCH_JOBS_MAX / 2);
    set(Some(1));
    rig.timed("purge", Command::Purge(rig.topic.clone().into()));
}
