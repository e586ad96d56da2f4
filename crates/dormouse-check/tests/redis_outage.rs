//! The answer to a change while Redis is away, and whether it was true.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::sync::Arc;

use dormouse_check::conformance::client::Client;
use dormouse_check::harness::redis::wait::wait_for;
use dormouse_check::harness::redis::{Append, RedisConfig, RedisServer};
use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::meter::MeterValue;
use dormouse_core::op::{Put, PutReply, Stats};
use dormouse_core::topic::TopicName;
use dormouse_redis::{Options, RedisBackend};

fn open(redis: &RedisServer) -> (Arc<RedisBackend>, Client) {
    let backend = Arc::new(RedisBackend::open(&redis.url(), Options::default()).unwrap());
    (Arc::clone(&backend), Client::new(backend))
}

fn topic() -> TopicName {
    TopicName::new("t").unwrap()
}

fn put(client: &Client) -> Result<PutReply, Error> {
    match client.ask(Command::Put(vec![Put::new(topic(), "x")])) {
        Ok(Reply::Put(mut items)) => items.remove(0),
        other => panic!("a put is answered with {other:?}"),
    }
}

/// Jobs in the topic, once Redis answers.
fn jobs(client: &Client) -> u64 {
    match client.ask(Command::Stats(Stats { topic: Some(topic()) })) {
        Ok(Reply::Stats(stats)) => stats.ready,
        other => panic!("stats are answered with {other:?}"),
    }
}

fn meter(backend: &RedisBackend, name: &str) -> Option<u64> {
    let found = backend.meters().into_iter().find(|meter| meter.name == name);
    found.map(|meter| match meter.value {
        MeterValue::Counter(value) | MeterValue::Gauge(value) => value,
        other => panic!("{name} is no number: {other:?}"),
    })
}

fn is_away(client: &Client) -> bool {
    client.ask(Command::Get(Vec::new())).is_err()
}

#[test]
fn a_put_that_never_left_is_unavailable_and_never_happens() {
    let config = RedisConfig { append: Append::Always, ..RedisConfig::default() };
    let mut redis = RedisServer::start(config);
    let (backend, client) = open(&redis);
    put(&client).unwrap();
    redis.kill_nine();
    wait_for("the backend notices", || is_away(&client));
    let error = put(&client).unwrap_err();
    assert_eq!(error.code, Code::Unavailable, "{error}");
    assert_eq!(meter(&backend, "redis_unconfirmed_total"), Some(0));
    redis.restart();
    wait_for("Redis answers again", || !is_away(&client));
    // Also not later: what comes after it finds only the first.
    assert_eq!(jobs(&client), 1);
    put(&client).unwrap();
    assert_eq!(jobs(&client), 2);
}

#[test]
fn a_put_that_left_is_unconfirmed_and_never_happens_later() {
    let mut redis = RedisServer::start(RedisConfig::default());
    let (backend, client) = open(&redis);
    put(&client).unwrap();
    assert_eq!(meter(&backend, "redis_unconfirmed_total"), Some(0));
    redis.freeze();
    let error = put(&client).unwrap_err();
    assert_eq!(error.code, Code::Unconfirmed, "{error}");
    assert_eq!(meter(&backend, "redis_unconfirmed_total"), Some(1));
    redis.thaw();
    wait_for("Redis answers again", || !is_away(&client));
    put(&client).unwrap();
    assert_eq!(jobs(&client), 2);
}

#[test]
fn the_clocks_of_one_machine_agree() {
    let redis = RedisServer::start(RedisConfig::default());
    let (backend, client) = open(&redis);
    assert_eq!(meter(&backend, "redis_clock_skew_ms"), None);
    put(&client).unwrap();
    let skew_ms = meter(&backend, "redis_clock_skew_ms").unwrap();
    assert!(skew_ms < 5_000, "{skew_ms}");
}
