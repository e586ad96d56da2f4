//! Bugs of two script batches in flight at a time, each as a test with a name, on real servers.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dormouse_check::harness::process::client::Client;
use dormouse_check::harness::redis::wait::wait_for;
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::{LeasedJob, Put, Reserve};
use dormouse_core::topic::TopicName;
use dormouse_redis::{Options, RedisBackend};

fn redis() -> RedisServer {
    RedisServer::start(RedisConfig::default())
}

fn open(redis: &RedisServer) -> Arc<dyn Backend> {
    Arc::new(RedisBackend::open(&redis.url(), Options::default()).unwrap())
}

fn job(topic: &str) -> Put {
    Put::new(TopicName::new(topic).unwrap(), "x")
}

fn put(client: &Client, put: Put) -> Result<JobId, Error> {
    match client.call_one(Command::Put(vec![put])) {
        Ok(Reply::Put(mut items)) => items.remove(0).map(|reply| reply.id),
        other => panic!("a put is answered with {other:?}"),
    }
}

fn reserve(client: &Client, wait_ms: i64) -> Vec<LeasedJob> {
    let topics = vec![TopicName::new("t").unwrap()];
    let reserve = Reserve { topics, max: 1, wait_ms, ttr_ms: None, session: None };
    match client.call_one(Command::Reserve(reserve)) {
        Ok(Reply::Jobs(jobs)) => jobs,
        other => panic!("a reserve is answered with {other:?}"),
    }
}

/// Nineteen requests were queued behind a script batch without a reply, with a timeout of ten
/// seconds. With those of the ninth second they were enough for a batch of their own, and waited
/// another ten.
#[test]
fn who_stands_behind_a_silent_redis_is_told_in_time() {
    let mut redis = redis();
    let backend = open(&redis);
    put(&Client::new(&backend), job("t")).unwrap();
    redis.freeze();
    thread::scope(|scope| {
        let ask = |after_ms| {
            let backend = &backend;
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(after_ms));
                let asked_at = Instant::now();
                let answer = put(&Client::new(backend), job("t"));
                (answer.map_err(|error| error.code), asked_at.elapsed())
            })
        };
        let first = ask(0);
        let in_line: Vec<_> = (0..19).map(|_| ask(100)).collect();
        let later: Vec<_> = (0..4).map(|_| ask(9_000)).collect();
        for asked in in_line {
            let (answer, took) = asked.join().unwrap();
            assert_eq!(answer, Err(Code::Unavailable));
            assert!(took < Duration::from_secs(14), "answered after {took:?}");
        }
        assert_eq!(first.join().unwrap().0, Err(Code::Unconfirmed));
        redis.thaw();
        // With what these are answered is a matter of luck.
        for asked in later {
            let _answer = asked.join().unwrap();
        }
    });
}

/// Counts answers.
#[derive(Default)]
struct Count(AtomicU64);

impl Sink for Count {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        self.0.fetch_add(answers.len() as u64, Ordering::Relaxed);
    }
}

/// Sends acks without effect, so that there is always a queue, until `is_over`.
fn keep_busy(backend: &Arc<dyn Backend>, id: JobId, is_over: &AtomicBool) {
    const UNDER_WAY: u64 = 64;
    let tokens = vec![Token { id, fence: 5 }; 100];
    let (answered, mut sent) = (Arc::new(Count::default()), 0);
    while !is_over.load(Ordering::Relaxed) {
        while sent - answered.0.load(Ordering::Relaxed) < UNDER_WAY {
            let command = Command::Ack(tokens.clone());
            let sink = Arc::clone(&answered) as Arc<dyn Sink>;
            backend.submit(vec![Request::new(Ticket::next(), command)], sink).unwrap();
            sent += 1;
        }
        thread::yield_now();
    }
}

/// Alarms were handled only while nothing was in the air, and here something always is.
#[test]
fn who_waits_is_woken_in_time_beside_a_load_that_never_rests() {
    let redis = redis();
    let backend = open(&redis);
    let client = Client::new(&backend);
    let id = put(&client, Put { delay_ms: Some(3_600_000), ..job("t") }).unwrap();
    let is_over = AtomicBool::new(false);
    let served = thread::scope(|scope| {
        scope.spawn(|| keep_busy(&backend, id, &is_over));
        let waiting = scope.spawn(|| {
            let began_at = Instant::now();
            (reserve(&Client::new(&backend), 6_000).len(), began_at.elapsed())
        });
        put(&client, Put { delay_ms: Some(700), ..job("t") }).unwrap();
        let served = waiting.join();
        is_over.store(true, Ordering::Relaxed);
        served
    });
    let (jobs, took) = served.unwrap();
    assert_eq!(jobs, 1);
    assert!(took < Duration::from_secs(4), "served after {took:?}");
}

/// A refusal was remembered for as long as the topic's priorities did not change.
#[test]
fn a_priority_that_was_refused_is_taken_when_others_are_free() {
    let redis = redis();
    let backend = open(&redis);
    let client = Client::new(&backend);
    let of = |priority| Put { priority: Some(priority), ..job("t") };
    for priority in 0..64 {
        put(&client, of(priority)).unwrap();
    }
    assert_eq!(put(&client, of(100)).unwrap_err().code, Code::Invalid);
    for _ in 0..64 {
        let tokens = reserve(&client, 0).iter().map(|job| job.token).collect();
        client.call_one(Command::Ack(tokens)).unwrap();
    }
    put(&client, of(100)).unwrap();
}

/// All commands that a server does, until it keeps silent for a while.
fn watch(redis: &RedisServer) -> impl FnOnce() -> Vec<String> + Send + use<> {
    let mut line = TcpStream::connect(redis.address()).unwrap();
    line.write_all(b"MONITOR\r\n").unwrap();
    line.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let mut lines = BufReader::new(line);
    let mut first = Vec::new();
    lines.read_until(b'\n', &mut first).unwrap();
    move || {
        let mut seen = Vec::new();
        loop {
            let mut text = Vec::new();
            match lines.read_until(b'\n', &mut text) {
                Ok(1..) => seen.push(String::from_utf8_lossy(&text).into_owned()),
                _ => return seen,
            }
        }
    }
}

/// A script batch that found Redis empty restored the topics' registrations. Another one
/// beside it did not wait for that, and wrote jobs to a topic without a place.
#[test]
fn nothing_is_written_before_a_lost_topic_has_its_place_again() {
    let redis = redis();
    let backend = open(&redis);
    let client = Client::new(&backend);
    let names: Vec<String> = (100..200).map(|number| format!("topic{number}")).collect();
    for name in names.iter().map(String::as_str).chain(["callers"]) {
        put(&client, job(name)).unwrap();
    }
    let (watch, is_over) = (watch(&redis), AtomicBool::new(false));
    let seen = thread::scope(|scope| {
        let watching = scope.spawn(watch);
        for _ in 0..120 {
            scope.spawn(|| {
                let client = Client::new(&backend);
                while !is_over.load(Ordering::Relaxed) {
                    put(&client, job("callers")).unwrap();
                }
            });
        }
        let jobs = || redis.must(&["HLEN", "dormouse:{callers/0}:j"]).int();
        wait_for("puts", || jobs() > 200);
        redis.must(&["FLUSHALL"]);
        wait_for("puts after the loss", || jobs() > 200);
        is_over.store(true, Ordering::Relaxed);
        watching.join().unwrap()
    });
    let flushed = seen.iter().position(|line| line.to_lowercase().contains("\"flushall\""));
    let after = &seen[flushed.unwrap()..];
    let writes = |line: &String| line.contains("\"HSET\" \"dormouse:{callers/0}:s\"");
    let before = &after[..after.iter().position(writes).expect("it goes on")];
    let restores: Vec<_> = before.iter().filter(|line| line.contains("restore")).collect();
    let is_restored = |name: &&String| restores.iter().any(|line| line.contains(name.as_str()));
    assert_eq!(names.iter().filter(is_restored).count(), names.len(), "places before a write");
}
