//! Reserves of many jobs over several topics on Redis: few scripts, the right jobs, none twice.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dormouse_check::conformance::client::Client;
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{LeasedJob, Put, Reserve};
use dormouse_core::topic::TopicName;
use dormouse_redis::{Options, RedisBackend};

fn client(redis: &RedisServer) -> Client {
    Client::new(Arc::new(RedisBackend::open(&redis.url(), Options::default()).unwrap()))
}

fn topic(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

/// Puts a job per name, due at increasing times; one of a name in capitals has a lower priority.
fn put(client: &Client, names: &[&str]) {
    let job = |(at_ms, name): (usize, &&str)| Put {
        at_ms: Some(1_000_000 + at_ms as i64),
        priority: name.starts_with(char::is_uppercase).then_some(9_999),
        ..Put::new(topic(&name.to_lowercase()), format!("{at_ms}"))
    };
    let puts: Vec<_> = names.iter().enumerate().map(job).collect();
    for puts in puts.chunks(1_000) {
        match client.ask(Command::Put(puts.to_vec())) {
            Ok(Reply::Put(items)) => assert!(items.iter().all(Result::is_ok)),
            other => panic!("{other:?}"),
        }
    }
}

fn reserve(client: &Client, names: &[&str], max: usize, ttr_ms: Option<i64>) -> Vec<LeasedJob> {
    let topics = names.iter().map(|name| topic(name)).collect();
    match client.ask(Command::Reserve(Reserve { topics, max, wait_ms: 0, ttr_ms, session: None })) {
        Ok(Reply::Jobs(jobs)) => jobs,
        other => panic!("{other:?}"),
    }
}

/// It was a script per job: 4,002 of them, and leases that ended before the answer arrived.
#[test]
fn topics_whose_jobs_alternate_are_reserved_in_few_scripts() {
    let redis = RedisServer::start(RedisConfig::default());
    let client = client(&redis);
    let names: Vec<_> = ["a", "b"].into_iter().cycle().take(4_000).collect();
    put(&client, &names);
    let before = redis.scripts_run();
    let (mut jobs, asked_at) = (Vec::new(), Instant::now());
    // One answer, unless the machine is so busy that its leases would not begin together.
    while jobs.len() < 4_000 {
        let more = reserve(&client, &["a", "b"], 4_000, None);
        assert!(!more.is_empty());
        jobs.extend(more);
        assert!(asked_at.elapsed() < Duration::from_secs(20));
    }
    let ids: HashSet<_> = jobs.iter().map(|job| job.id).collect();
    assert_eq!(ids.len(), 4_000);
    let scripts = redis.scripts_run() - before;
    assert!(scripts <= 40, "{scripts} scripts");
}

/// An answer held the same job under two tokens, one of them void.
#[test]
fn an_answer_has_no_job_twice_although_leases_end_meanwhile() {
    let redis = RedisServer::start(RedisConfig::default());
    let client = client(&redis);
    let topics = ["a", "b", "c", "d", "e", "f"];
    let names: Vec<_> = topics.into_iter().cycle().take(240).collect();
    put(&client, &names);
    for _ in 0..20 {
        let jobs = reserve(&client, &topics, 500, Some(1));
        let ids: HashSet<_> = jobs.iter().map(|job| job.id).collect();
        assert_eq!(ids.len(), jobs.len());
    }
}

/// What a reserve takes over several topics, in the order of its answer.
fn check(jobs: &[&str], max: usize, expected: &[usize]) {
    let redis = RedisServer::start(RedisConfig::default());
    let client = client(&redis);
    put(&client, jobs);
    let body = |job: LeasedJob| String::from_utf8(job.body.to_vec()).unwrap().parse().unwrap();
    let taken: Vec<usize> =
        reserve(&client, &["a", "b"], max, None).into_iter().map(body).collect();
    assert_eq!(taken, expected, "{max} of {jobs:?}");
}

#[test]
fn a_reserve_takes_what_is_due_first_or_a_fair_share() {
    check(&["a", "b", "a", "b"], 1, &[0]);
    check(&["a", "b", "a", "b"], 2, &[0, 1]);
    check(&["a", "b", "a", "b"], 3, &[0, 1, 2]);
    check(&["a", "a", "b", "b"], 2, &[0, 1]);
    check(&["b", "b", "a", "b"], 4, &[0, 1, 2, 3]);
    // Two each: exact would be 0, 1, 2, 3.
    check(&["a", "b", "b", "b", "a"], 4, &[0, 1, 2, 4]);
    // But never a job of a lower priority.
    check(&["a", "b", "b", "b", "A"], 4, &[0, 1, 2, 3]);
}
