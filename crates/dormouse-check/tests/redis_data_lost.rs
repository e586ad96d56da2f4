//! Redis comes back without its data: what is given again, and what is not.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::HashSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dormouse_check::conformance::client::Client;
use dormouse_check::harness::redis::wait::wait_for;
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::JobId;
use dormouse_core::op::{Put, PutReply, Reserve, SetTopic, Stats, Target};
use dormouse_core::topic::{Settings, TopicName};
use dormouse_redis::{Options, RedisBackend, VerifyOptions, verify};

fn redis() -> RedisServer {
    RedisServer::start(RedisConfig::default())
}

fn client(redis: &RedisServer, partitions: u16) -> Client {
    let options = Options { partitions: Some(partitions), ..Options::default() };
    Client::new(Arc::new(RedisBackend::open(&redis.url(), options).unwrap()))
}

fn named(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

fn put(client: &Client, topic: &str) -> Result<PutReply, Error> {
    match client.ask(Command::Put(vec![Put::new(named(topic), topic.to_owned())])) {
        Ok(Reply::Put(mut items)) => items.remove(0),
        Err(error) => Err(error),
        other => panic!("a put is answered with {other:?}"),
    }
}

/// A put that is answered with an id, if not at once.
fn must_put(client: &Client, topic: &str) -> JobId {
    let mut id = None;
    wait_for("a put is taken", || match put(client, topic) {
        Ok(reply) => id.replace(reply.id).is_none(),
        Err(error) => {
            assert_eq!(error.code, Code::Unavailable, "{error}");
            false
        }
    });
    id.unwrap()
}

/// The topic of a job, as its body says.
fn topic_of(client: &Client, id: JobId) -> Option<String> {
    match client.ask(Command::Get(vec![Target::Id(id)])) {
        Ok(Reply::Views(mut items)) => {
            let view = items.remove(0).ok()?;
            assert_eq!(view.job.content.body, view.topic.as_str(), "{id}");
            Some(view.topic.to_string())
        }
        other => panic!("a get is answered with {other:?}"),
    }
}

fn reserve(client: &Client, topic: &str) -> Vec<JobId> {
    let topics = vec![named(topic)];
    let reserve = Reserve { topics, max: 100, wait_ms: 0, ttr_ms: None, session: None };
    match client.ask(Command::Reserve(reserve)) {
        Ok(Reply::Jobs(jobs)) => jobs.into_iter().map(|job| job.id).collect(),
        other => panic!("a reserve is answered with {other:?}"),
    }
}

fn settings(client: &Client, topic: &str) -> Settings {
    match client.ask(Command::Stats(Stats { topic: Some(named(topic)) })) {
        Ok(Reply::Stats(stats)) => stats.settings,
        other => panic!("stats are answered with {other:?}"),
    }
}

fn is_sound(redis: &RedisServer) {
    let report = verify(&redis.url(), VerifyOptions { mend: false }).unwrap();
    assert!(report.is_sound(), "{:#?}", report.problems);
}

/// Numbers began at 1 again, so that an id from before meant another job.
#[test]
fn ids_are_not_given_again() {
    let redis = redis();
    let old = client(&redis, 2);
    let mut given = HashSet::new();
    let mut put_some = |client: &Client| {
        for _ in 0..20 {
            assert!(given.insert(must_put(client, "t")), "an id was given again");
            // Fewer than 1,000 a second: that is what the clock accounts for.
            thread::sleep(Duration::from_millis(1));
        }
        given.iter().max().copied().unwrap()
    };
    let last = put_some(&old);
    // By a server that knew the topic, and, after another loss, by one that did not.
    redis.must(&["FLUSHALL"]);
    put_some(&old);
    redis.must(&["FLUSHALL"]);
    let new = client(&redis, 2);
    put_some(&new);
    assert_eq!(topic_of(&new, last), None, "what is lost stays lost");
    is_sound(&redis);
}

/// More than the clock accounts for: the server remembers how far it was.
#[test]
fn ids_of_a_busy_partition_are_not_given_again() {
    let redis = redis();
    let old = client(&redis, 1);
    must_put(&old, "t");
    // As if jobs had been put for months at a rate that Redis cannot take.
    let key = "dormouse:{t/0}:s";
    let mut header = redis.must(&["HGET", key, "b"]).bytes().to_vec();
    header[..8].copy_from_slice(&1e11_f64.to_be_bytes());
    redis.must(&[b"HSET".as_slice(), key.as_bytes(), b"b", &header]);
    let last = must_put(&old, "t");
    assert_eq!(last.0 & ((1 << 40) - 1), 100_000_000_001);
    redis.must(&["FLUSHALL"]);
    assert!(must_put(&old, "t") > last, "an id may be given again");
}

/// A server that knew that its shards had gone to other topics went on with them: its jobs had ids
/// of others, and nobody else could find them.
#[test]
fn a_topic_whose_shards_are_taken_gets_others() {
    let redis = redis();
    let old = client(&redis, 1);
    let before = ["a1", "a2"].map(|topic| must_put(&old, topic));
    redis.must(&["FLUSHALL"]);
    let new = client(&redis, 1);
    let others = ["n1", "n2"].map(|topic| must_put(&new, topic));
    assert_eq!(before.map(|id| id.0 >> 40), others.map(|id| id.0 >> 40), "the case at hand");
    // Meanwhile it answers `unavailable`, and nothing else.
    let after = ["a1", "a2"].map(|topic| must_put(&old, topic));
    for client in [&old, &new] {
        for (id, topic) in after.into_iter().zip(["a1", "a2"]) {
            assert_eq!(topic_of(client, id).as_deref(), Some(topic));
        }
        for (id, topic) in others.into_iter().zip(["n1", "n2"]) {
            assert_eq!(topic_of(client, id).as_deref(), Some(topic));
        }
        for id in before {
            assert_eq!(topic_of(client, id), None, "{id} is lost");
        }
    }
    is_sound(&redis);
    assert_eq!(reserve(&new, "a2"), [after[1]], "another server finds it");
}

/// The topic has been registered anew, with other shards, before the old server looks.
#[test]
fn a_topic_that_others_registered_anew_is_looked_up_again() {
    let redis = redis();
    let old = client(&redis, 1);
    must_put(&old, "t");
    redis.must(&["FLUSHALL"]);
    let new = client(&redis, 1);
    must_put(&new, "other");
    let theirs = must_put(&new, "t");
    let ours = must_put(&old, "t");
    assert_eq!(ours.0 >> 40, theirs.0 >> 40);
    assert_eq!(topic_of(&new, ours).as_deref(), Some("t"));
    is_sound(&redis);
}

/// A reserve had registered the topic; nothing of it was ever stored, so nothing was missing.
#[test]
fn a_topic_without_jobs_does_not_keep_shards_that_others_got() {
    let redis = redis();
    let old = client(&redis, 1);
    let topics = vec![named("t")];
    let reserve = Reserve { topics, max: 1, wait_ms: 1, ttr_ms: None, session: None };
    assert_eq!(old.ask(Command::Reserve(reserve)), Ok(Reply::Jobs(Vec::new())));
    redis.must(&["FLUSHALL"]);
    let new = client(&redis, 1);
    let other = must_put(&new, "other");
    thread::sleep(Duration::from_millis(1_100)); // What was just looked up is not looked up again.
    let ours = must_put(&old, "t");
    assert_ne!(ours.0 >> 40, other.0 >> 40, "two topics have the same shard");
    is_sound(&redis);
}

/// Only the register is lost: the new one gave shards away that jobs have.
#[test]
fn a_partition_of_another_registration_is_unavailable_until_it_is_mended() {
    let redis = redis();
    let old = client(&redis, 1);
    must_put(&old, "first");
    let before = must_put(&old, "t");
    let register = ["t", "i", "n"].map(|key| format!("dormouse:{{-topics}}:{key}"));
    let [t, i, n] = register.each_ref().map(String::as_str);
    redis.must(&["DEL", t, i, n]);
    let new = client(&redis, 1);
    let error = put(&new, "t").unwrap_err();
    assert_eq!(error.code, Code::Unavailable, "{error}");
    assert!(error.text.contains("dormouse verify --mend"), "{error}");
    let report = verify(&redis.url(), VerifyOptions { mend: true }).unwrap();
    assert!(report.is_sound() && report.found > 0, "{:#?}", report.problems);
    let after = must_put(&new, "t");
    assert_ne!(after, before);
    // A server that knew the partition before began to number its batches anew, and Redis took them
    // for repeats: the answer was an old one, and nothing was put.
    let again = must_put(&old, "t");
    assert!(again != before && again != after, "{again:?} was given again");
    assert_eq!(reserve(&new, "t").len(), 3);
}

#[test]
fn settings_are_written_back() {
    let redis = redis();
    let old = client(&redis, 2);
    let wanted = Settings {
        jobs_max: Some(1_000),
        delay_ms: Some(5),
        expires_after_ms: Some(60_000),
        dead_topic: Some(named("morgue")),
        keep_done_ms: Some(30_000),
        ..Settings::default()
    };
    for topic in ["s1", "s2"] {
        let set = SetTopic { topic: named(topic), settings: wanted.clone() };
        old.ask(Command::from(set)).unwrap();
    }
    for _ in 0..2 {
        must_put(&old, "plain");
    }
    redis.must(&["FLUSHALL"]);
    // One that is used notices for all.
    must_put(&old, "plain");
    let new = client(&redis, 2);
    for topic in ["s1", "s2"] {
        must_put(&new, topic);
        wait_for("the settings are back", || settings(&new, topic) == wanted);
    }
    assert_eq!(settings(&new, "plain"), Settings::default());
}

/// Data is lost again while topics are being registered again: a topic that was not there for a
/// moment was taken for one that others had registered, and its settings were forgotten.
#[test]
fn settings_survive_losses_during_a_restore() {
    let redis = redis();
    let old = client(&redis, 2);
    let wanted = Settings { jobs_max: Some(1_000), ..Settings::default() };
    let topics: Vec<String> = (0..30).map(|number| format!("s{number}")).collect();
    for topic in &topics {
        let set = SetTopic { topic: named(topic), settings: wanted.clone() };
        old.ask(Command::from(set)).unwrap();
    }
    for round in 0..40 {
        redis.must(&["FLUSHALL"]);
        let pending = old.send(Command::Put(vec![Put::new(named(&topics[round % 30]), "x")]));
        thread::sleep(Duration::from_micros(250 * (round as u64 % 16)));
        redis.must(&["FLUSHALL"]);
        // It may be refused as `unavailable`.
        let _answer = pending.wait();
    }
    must_put(&old, "s0");
    redis.must(&["FLUSHALL"]);
    must_put(&old, "s0");
    let new = client(&redis, 2);
    for topic in &topics {
        must_put(&new, topic);
        wait_for("the settings are back", || settings(&new, topic) == wanted);
    }
    is_sound(&redis);
}
