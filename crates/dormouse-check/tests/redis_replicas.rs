//! `Level::Replicated` while replicas are missing, and refusals of Redis: what is said, and where.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dormouse_check::conformance::client::Client;
use dormouse_check::faults::relay::Relay;
use dormouse_check::harness::redis::wait::wait_for;
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::meter::MeterValue;
use dormouse_core::op::{Put, PutReply, Stats};
use dormouse_core::topic::TopicName;
use dormouse_redis::{Level, Options, RedisBackend};

/// Longer than anything takes that comes at all.
const TIMEOUT: Duration = Duration::from_secs(25);
const BETWEEN: Duration = Duration::from_millis(20);

fn open(url: &str, level: Level) -> (Arc<RedisBackend>, Client) {
    let options = Options { level, partitions: Some(1), clock: None };
    let backend = Arc::new(RedisBackend::open(url, options).unwrap());
    (Arc::clone(&backend), Client::new(backend))
}

fn topic() -> TopicName {
    TopicName::new("t").unwrap()
}

fn put(client: &Client) -> Result<PutReply, Error> {
    let pending = client.send(Command::Put(vec![Put::new(topic(), "x")]));
    item(pending.wait())
}

fn item(answer: Result<Reply, Error>) -> Result<PutReply, Error> {
    match answer {
        Ok(Reply::Put(mut items)) => items.remove(0),
        Err(error) => Err(error),
        other => panic!("a put is answered with {other:?}"),
    }
}

fn jobs(client: &Client) -> u64 {
    match client.ask(Command::Stats(Stats { topic: Some(topic()) })) {
        Ok(Reply::Stats(stats)) => stats.ready,
        other => panic!("stats are answered with {other:?}"),
    }
}

fn replica_of(primary: &RedisServer) -> RedisServer {
    let extra = vec![format!("replicaof {} {}", primary.host(), primary.port())];
    RedisServer::start(RedisConfig { extra, ..RedisConfig::default() })
}

/// The values of a meter by node.
fn by_node(backend: &RedisBackend, name: &str) -> Vec<(String, u64)> {
    let found = backend.meters().into_iter().find(|meter| meter.name == name).unwrap();
    match found.value {
        MeterValue::Gauges { values, .. } => values,
        other => panic!("{name} has no values by node: {other:?}"),
    }
}

/// It exited: no server could be started while a replica was away, though those that ran went on.
#[test]
fn a_server_starts_while_a_replica_is_away_and_says_so() {
    let primary = RedisServer::start(RedisConfig::default());
    let node = primary.address();
    let (_applied, other) = open(&primary.url(), Level::Applied);
    put(&other).unwrap();
    let (backend, client) = open(&primary.url(), Level::Replicated(1));
    let warnings = backend.warnings();
    let is_about_replicas = |text: &String| text.contains("0 of 1 replicas");
    assert!(warnings.iter().any(is_about_replicas), "{warnings:?}");
    let error = put(&client).unwrap_err();
    assert_eq!(error.code, Code::Unconfirmed, "{error}");
    assert_eq!(jobs(&client), 2, "it was honest");
    assert_eq!(by_node(&backend, "redis_node_replicas_missing"), [(node.clone(), 1)]);
    assert!(backend.concern().unwrap().contains("too few replicas"));

    let _replica = replica_of(&primary);
    wait_for("the replica confirms", || put(&client).is_ok());
    assert_eq!(by_node(&backend, "redis_node_replicas_missing"), [(node, 0)]);
    assert_eq!(backend.concern(), None);
}

/// What `/readyz` said of the replicas was what the last change had seen, for as long as there was
/// no other.
#[test]
fn a_replica_that_comes_or_goes_is_seen_without_a_change() {
    let primary = RedisServer::start(RedisConfig::default());
    let (backend, client) = open(&primary.url(), Level::Replicated(1));
    let replica = replica_of(&primary);
    wait_for("the replica confirms", || put(&client).is_ok());
    let concern = || {
        client.ask(Command::Get(Vec::new())).unwrap();
        backend.concern()
    };
    // A look from before the replica came may be noted after the put.
    wait_for("nothing is missed", || concern().is_none());
    drop(replica);
    wait_for("it is missed", || concern().is_some_and(|text| text.contains("too few replicas")));
    let _replica = replica_of(&primary);
    wait_for("it is back", || concern().is_none());
}

/// That it was connected counted as if it had confirmed: `/readyz` was fine after every change that
/// was answered `unconfirmed`.
#[test]
fn a_replica_that_is_connected_and_confirms_nothing_is_missed() {
    let primary = RedisServer::start(RedisConfig::default());
    let (backend, client) = open(&primary.url(), Level::Replicated(1));
    let mut replica = replica_of(&primary);
    wait_for("the replica confirms", || put(&client).is_ok());
    replica.freeze();
    assert_eq!(put(&client).unwrap_err().code, Code::Unconfirmed);
    client.ask(Command::Get(Vec::new())).unwrap();
    assert!(backend.concern().is_some_and(|text| text.contains("too few replicas")));
    replica.thaw();
    wait_for("the replica confirms", || put(&client).is_ok());
    wait_for("nothing is missed", || backend.concern().is_none());
}

/// The connection that waits for replicas kept Redis' words to itself.
#[test]
fn a_refusal_carries_the_reason_with_replicas_too() {
    let mut primary = RedisServer::start(RedisConfig::default());
    let _replica = replica_of(&primary);
    let (backend, client) = open(&primary.url(), Level::Replicated(1));
    wait_for("the replica confirms", || put(&client).is_ok());
    assert_eq!(by_node(&backend, "redis_node_up"), [(primary.address(), 1)]);
    primary.kill_nine();
    wait_for("the backend notices", || client.ask(Command::Get(Vec::new())).is_err());
    let error = put(&client).unwrap_err();
    assert!(error.text.contains("says \""), "{error}");
    assert!(error.text.contains(&primary.address()), "{error}");
    assert_eq!(by_node(&backend, "redis_node_up"), [(primary.address(), 0)]);
}

/// Redis made the change and the reply was lost; then it refused the script for good. That was
/// answered `unavailable`, which means that nothing happened.
#[test]
fn a_change_that_may_have_happened_is_unconfirmed_whatever_redis_says_later() {
    let redis = RedisServer::start(RedisConfig::default());
    let relay = Relay::to(&redis.address());
    let (_far, client) = open(&relay.url(), Level::Applied);
    let (_near, other) = open(&redis.url(), Level::Applied);
    put(&client).unwrap();
    relay.cut();
    let pending = client.send(Command::Put(vec![Put::new(topic(), "x")]));
    wait_for("the change is made", || jobs(&other) == 2);
    redis.must(&["ACL", "SETUSER", "default", "-evalsha"]);
    relay.heal();
    let error = item(pending.wait()).unwrap_err();
    assert_eq!(error.code, Code::Unconfirmed, "{error}");
    assert!(error.text.contains("NOPERM"), "{error}");
    // One that was never sent before is refused.
    assert_eq!(put(&client).unwrap_err().code, Code::Unavailable);
}

/// Requests behind one that had timed out were looked at once a second only.
#[test]
fn nothing_waits_longer_than_it_should_for_a_frozen_redis() {
    let mut redis = RedisServer::start(RedisConfig::default());
    let (_backend, client) = open(&redis.url(), Level::Applied);
    put(&client).unwrap();
    redis.freeze();
    let mut asked = Vec::new();
    for _ in 0..4 {
        asked.push((Instant::now(), client.send(Command::Put(vec![Put::new(topic(), "x")]))));
        thread::sleep(Duration::from_millis(150)); // Not in one batch.
    }
    let mut slowest = Duration::ZERO;
    while !asked.is_empty() {
        asked.retain(|(asked_at, pending)| {
            let is_answered = pending.is_answered();
            if is_answered {
                slowest = slowest.max(asked_at.elapsed());
            }
            assert!(asked_at.elapsed() < TIMEOUT, "no answer");
            !is_answered
        });
        thread::sleep(BETWEEN);
    }
    redis.thaw();
    assert!(slowest < Duration::from_millis(10_500), "{slowest:?}");
}
