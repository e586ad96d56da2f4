//! A sound installation is found sound: at rest, on a cluster, and under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use dormouse_check::conformance::client::Client;
use dormouse_check::harness::redis::{RedisCluster, RedisConfig, RedisServer};
use dormouse_core::backoff::{Backoff, Delays};
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::Token;
use dormouse_core::op::{Kick, Lock, Nack, OnConflict, Put, Reserve, Unlock};
use dormouse_redis::{Options, RedisBackend};

use crate::installation::{HOUR_MS, Installation, check, is_clean, topic};

fn open(url: &str, partitions: u16) -> Client {
    let options = Options { partitions: Some(partitions), ..Options::default() };
    Client::new(Arc::new(RedisBackend::open(url, options).unwrap()))
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

#[test]
fn every_state_is_counted() {
    let installation = Installation::new();
    let report = check(&installation.server.url(), false);
    is_clean(&report);
    let states = (report.delayed, report.ready, report.leased, report.dead);
    assert_eq!(states, (1, 6, 2, 1));
    let others = (report.topics, report.partitions, report.keys, report.holds, report.locks);
    assert_eq!(others, (1, 2, 2, 1, 1));
    assert_eq!(report.unchecked, Vec::<String>::new());
    installation.delivers_all_but(&[]);
}

#[test]
fn an_empty_redis_is_sound() {
    let server = RedisServer::start(RedisConfig::default());
    let report = check(&server.url(), true);
    is_clean(&report);
    assert_eq!(report.partitions, 0);
}

#[test]
fn who_calls_may_be_inside_a_runtime() {
    let server = RedisServer::start(RedisConfig::default());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    is_clean(&runtime.block_on(async { check(&server.url(), false) }));
}

#[test]
fn a_url_that_leads_nowhere_is_an_error() {
    let error = dormouse_redis::verify("redis://127.0.0.1:1", Default::default()).unwrap_err();
    assert!(error.text.contains("127.0.0.1:1"), "{error}");
}

/// One of many lives: what a busy installation does, over and over.
struct Load<'a> {
    client: &'a Client,
    random: u64,
    tokens: Vec<Token>,
}

impl Load<'_> {
    fn dice(&mut self, sides: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % sides
    }

    fn put(&mut self, name: &str) -> Put {
        let key = self.dice(40);
        let modes =
            [OnConflict::Keep, OnConflict::Replace, OnConflict::Earliest, OnConflict::Latest];
        Put {
            key: (key < 20).then(|| bytes(&format!("key{key}"))),
            key_ttl_ms: (key < 5).then_some(20),
            on_conflict: modes[self.dice(4) as usize],
            priority: Some([1024, 7, 9][self.dice(3) as usize]),
            delay_ms: Some([0, 0, 5, HOUR_MS][self.dice(4) as usize]),
            attempts_max: Some(2),
            ttr_ms: (self.dice(3) == 0).then_some(1_000),
            backoff: Some(Arc::new(Backoff::from(Delays::List { delays_ms: vec![1, 2] }))),
            ..Put::new(topic(name), vec![b'x'; self.dice(300) as usize])
        }
    }

    fn step(&mut self, name: &str) {
        let lock = (bytes(&format!("lock{}", self.dice(5))), bytes("owner"));
        match self.dice(8) {
            0..=2 => {
                let puts = (0..self.dice(20) + 1).map(|_| self.put(name)).collect();
                self.client.ask(Command::Put(puts)).unwrap();
            }
            3..=5 => {
                let (topics, max) = (vec![topic(name)], self.dice(20) as usize + 1);
                let reserve = Reserve { topics, max, wait_ms: 0, ttr_ms: None, session: None };
                if let Reply::Jobs(jobs) = self.client.ask(Command::Reserve(reserve)).unwrap() {
                    self.tokens.extend(jobs.iter().map(|job| job.token));
                }
            }
            6 => {
                let (name, owner) = lock;
                let lock = Lock { name, owner, ttl_ms: 1_000, wait_ms: 0 };
                self.client.ask(Command::Lock(lock)).unwrap();
            }
            _ => {
                self.client.ask(Command::Kick(Kick { topic: topic(name), max: 3 })).unwrap();
                // Nobody may hold it.
                let _free =
                    self.client.ask(Command::Unlock(Unlock { name: lock.0, owner: lock.1 }));
            }
        }
        let half = self.tokens.split_off(self.tokens.len() / 2);
        if self.dice(3) == 0 {
            let failed = |token| Nack { token, delay_ms: None, priority: Some(7), error: None };
            self.client.ask(Command::Nack(half.into_iter().map(failed).collect())).unwrap();
        } else {
            self.client.ask(Command::Ack(half)).unwrap();
        }
    }
}

/// Checks for a while what others work on, then what they leave.
fn under_load(url: &str, partitions: u16, mend: bool) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 1..4_u64 {
            let stop = &stop;
            scope.spawn(move || {
                let client = open(url, partitions);
                let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mut load = Load { client: &client, random, tokens: Vec::new() };
                while !stop.load(Ordering::Relaxed) {
                    load.step(if seed % 2 == 0 { "a" } else { "b/c" });
                }
            });
        }
        let end = Instant::now() + Duration::from_secs(4);
        let mut checks = 0;
        while Instant::now() < end || checks < 3 {
            let report = std::panic::catch_unwind(|| check(url, mend));
            let is_over = report.as_ref().map_or(true, |report| report.found > 0);
            if is_over {
                stop.store(true, Ordering::Relaxed);
            }
            is_clean(&report.unwrap());
            checks += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
    let report = check(url, false);
    is_clean(&report);
    assert_eq!(report.topics, 2);
    assert!(report.delayed + report.ready + report.leased + report.dead > 0);
    assert_eq!(report.unchecked, Vec::<String>::new());
}

#[test]
fn a_server_under_load_is_sound() {
    let server = RedisServer::start(RedisConfig::default());
    under_load(&server.url(), 3, false);
}

/// To mend what needs no mending changes nothing.
#[test]
fn mending_under_load_finds_nothing_to_mend() {
    let server = RedisServer::start(RedisConfig::default());
    under_load(&server.url(), 1, true);
}

#[test]
fn a_cluster_under_load_is_sound() {
    let cluster = RedisCluster::start(3, 0);
    under_load(&cluster.url(), 8, false);
    // A partition that nobody knows is found on whatever node it lies.
    for index in 20..30 {
        let key = format!("dormouse:{{stray/{index}}}:s");
        let node = cluster.primary_of(cluster.slot_of(&key));
        cluster.command_on(node, &["HSET", &key, "n", "1"]);
    }
    let report = check(&cluster.url(), false);
    assert_eq!(report.found, 10, "{report:?}");
}
