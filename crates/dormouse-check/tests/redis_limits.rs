//! Limits over several servers on one Redis: never more leased than allowed, never faster, nobody
//! forgotten. By what the callers saw: a lease is surely held from when it was given until its
//! holder asks to end it, or until it runs out.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use dormouse_check::conformance::client::{Client, Pending};
use dormouse_check::generate::rng::Rng;
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{LeasedJob, Nack, Put, Release, Reserve, SetTopic};
use dormouse_core::rate::Rate;
use dormouse_core::topic::{Settings, TopicName};
use dormouse_redis::{Options, RedisBackend};

fn topic() -> TopicName {
    TopicName::new("t").unwrap()
}

fn client(redis: &RedisServer, partitions: u16) -> Client {
    let options = Options { partitions: Some(partitions), ..Options::default() };
    Client::new(Arc::new(RedisBackend::open(&redis.url(), options).unwrap()))
}

fn set(client: &Client, settings: Settings) {
    client.ask(Command::from(SetTopic { topic: topic(), settings })).unwrap();
}

fn put(client: &Client, jobs: usize, job: impl Fn(usize) -> Put) {
    for from in (0..jobs).step_by(500) {
        let puts = (from..jobs.min(from + 500)).map(&job).collect();
        let Ok(Reply::Put(items)) = client.ask(Command::Put(puts)) else { panic!("no put") };
        assert!(items.iter().all(Result::is_ok));
    }
}

fn wait_for(max: usize, wait_ms: i64, ttr_ms: Option<i64>) -> Command {
    Command::Reserve(Reserve { topics: vec![topic()], max, wait_ms, ttr_ms, session: None })
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

/// A lease as its holder knows it, by Redis' clock.
struct Held {
    group: Option<Bytes>,
    from_ms: u64,
    /// It was surely held before this instant.
    until_ms: u64,
}

/// Servers that come and go, and what their callers were given.
struct Servers {
    redis: RedisServer,
    partitions: u16,
    servers: Vec<Mutex<Client>>,
    held: Mutex<Vec<Held>>,
    ends_at: Instant,
}

impl Servers {
    /// Takes jobs and ends their leases in every way, at servers at random.
    fn work(&self, seed: u64) {
        let mut rng = Rng::new(seed);
        while Instant::now() < self.ends_at {
            let server = rng.below(self.servers.len() as u64) as usize;
            let client = self.servers[server].lock().unwrap().clone();
            let ttr_ms = 20 + rng.below(150) as i64;
            let max = 1 + rng.below(4) as usize;
            // A server that is replaced answers with an error.
            let Ok(Reply::Jobs(jobs)) = client.ask(wait_for(max, 100, Some(ttr_ms))) else {
                continue;
            };
            std::thread::sleep(Duration::from_millis(rng.below(30)));
            for job in jobs {
                let until_ms = self.end(&client, &job, rng.below(10));
                let from_ms = job.expires_at - job.ttr_ms;
                self.held.lock().unwrap().push(Held { group: job.group, from_ms, until_ms });
            }
        }
    }

    /// Ends a lease, or lets it run out. Until when it was surely held.
    fn end(&self, client: &Client, job: &LeasedJob, how: u64) -> u64 {
        let asked_at = now_ms();
        let (token, priority) = (job.token, None);
        let command = match how {
            0..6 => Command::Ack(vec![token]),
            6 => Command::Nack(vec![Nack { token, delay_ms: Some(1), priority, error: None }]),
            7 => Command::Release(vec![Release { token, delay_ms: None, priority }]),
            _ => return job.expires_at,
        };
        client.ask(command).ok();
        asked_at.min(job.expires_at)
    }

    /// Replaces servers at random, without a word to anybody.
    fn replace(&self) {
        let mut rng = Rng::new(7);
        while Instant::now() < self.ends_at {
            std::thread::sleep(Duration::from_millis(200 + rng.below(300)));
            let fresh = client(&self.redis, self.partitions);
            let server = rng.below(self.servers.len() as u64) as usize;
            *self.servers[server].lock().unwrap() = fresh;
        }
    }
}

/// At no instant are more held than allowed.
fn check_slots(held: &[&Held], max: u64, of: &str) {
    for taken in held {
        let at = taken.from_ms;
        let beside = held.iter().filter(|other| other.from_ms <= at && at < other.until_ms);
        let beside = beside.count() as u64;
        assert!(beside <= max, "{of}: {beside} leases at {at}, {max} are allowed");
    }
}

/// No window has more than the rate and a burst.
fn check_rate(held: &[&Held], rate: Rate, of: &str) {
    let mut taken: Vec<u64> = held.iter().map(|held| held.from_ms).collect();
    taken.sort_unstable();
    for (first, from) in taken.iter().enumerate() {
        for (last, to) in taken.iter().enumerate().skip(first) {
            let allowed = ((to - from + 1) * rate.jobs - 1) / rate.per_ms + rate.burst;
            let jobs = (last - first + 1) as u64;
            assert!(jobs <= allowed, "{of}: {jobs} jobs from {from} to {to}, {allowed} allowed");
        }
    }
}

fn limits_hold(partitions: u16) {
    let redis = RedisServer::start(RedisConfig::default());
    let (rate, group_rate) =
        (Rate { burst: 6, ..Rate::new(300, 1_000) }, Rate { burst: 2, ..Rate::new(80, 1_000) });
    let first = client(&redis, partitions);
    set(
        &first,
        Settings {
            leased_max: Some(6),
            rate: Some(rate),
            group_leased_max: Some(2),
            group_rate: Some(group_rate),
            ..Settings::default()
        },
    );
    let groups = ["a", "b", "c", "d"].map(|name| Some(Bytes::from_static(name.as_bytes())));
    let group = |number: usize| groups.get(number % 5).cloned().flatten();
    put(&first, 3_000, |n| Put {
        group: group(n),
        attempts_max: Some(0),
        ..Put::new(topic(), "x")
    });
    let servers = (0..3).map(|_| Mutex::new(client(&redis, partitions))).collect();
    let ends_at = Instant::now() + Duration::from_secs(5);
    let all_servers = Servers { redis, partitions, servers, held: Mutex::default(), ends_at };
    std::thread::scope(|scope| {
        for seed in 0..6 {
            let all_servers = &all_servers;
            scope.spawn(move || all_servers.work(seed));
        }
        scope.spawn(|| all_servers.replace());
    });
    let held = all_servers.held.into_inner().unwrap();
    assert!(held.len() > 50, "only {} jobs were given", held.len());
    let all: Vec<&Held> = held.iter().collect();
    check_slots(&all, 6, "the topic");
    check_rate(&all, rate, "the topic");
    for group in groups {
        let its: Vec<&Held> = held.iter().filter(|held| held.group == group).collect();
        assert!(!its.is_empty());
        check_slots(&its, 2, &format!("{group:?}"));
        check_rate(&its, group_rate, &format!("{group:?}"));
    }
}

#[test]
fn limits_hold_while_servers_come_and_go() {
    limits_hold(1);
}

#[test]
fn limits_hold_over_several_partitions() {
    limits_hold(3);
}

/// Servers poll every few seconds anyway: one that is not woken is only late.
const RECHECK_MIN: Duration = Duration::from_millis(4_500);

/// A thousand wait at two servers for one slot; a third ends the leases.
fn one_slot_serves_all(settings: Settings, group: Option<Bytes>) {
    const WAITERS: usize = 1_000;
    let redis = RedisServer::start(RedisConfig::default());
    let other = client(&redis, 1);
    set(&other, settings);
    put(&other, WAITERS, |_| Put { group: group.clone(), ..Put::new(topic(), "x") });
    let servers = [client(&redis, 1), client(&redis, 1)];
    let mut waiting: Vec<Pending> = Vec::new();
    for number in 0..WAITERS {
        waiting.push(servers[number % 2].send(wait_for(1, 60_000, None)));
    }
    let mut last = Instant::now();
    while !waiting.is_empty() {
        let Some(index) = waiting.iter().position(Pending::is_answered) else {
            assert!(last.elapsed() < RECHECK_MIN, "{} were forgotten", waiting.len());
            std::thread::sleep(Duration::from_micros(200));
            continue;
        };
        let jobs = match waiting.swap_remove(index).wait() {
            Ok(Reply::Jobs(jobs)) => jobs,
            other => panic!("{other:?}"),
        };
        assert_eq!(jobs.len(), 1);
        let another = waiting.iter().any(Pending::is_answered);
        assert!(!another, "one slot served two");
        last = Instant::now();
        other.ask(Command::Ack(vec![jobs[0].token])).unwrap();
    }
}

#[test]
fn a_thousand_waiters_and_one_slot_lose_no_wake_up() {
    one_slot_serves_all(Settings { leased_max: Some(1), ..Settings::default() }, None);
}

#[test]
fn a_thousand_waiters_and_one_slot_of_a_group_lose_no_wake_up() {
    let settings = Settings { group_leased_max: Some(1), ..Settings::default() };
    one_slot_serves_all(settings, Some(Bytes::from_static(b"g")));
}

#[test]
fn parked_jobs_of_a_group_follow_its_rate_while_no_lease_ends() {
    const JOBS: usize = 20;
    let redis = RedisServer::start(RedisConfig::default());
    let client = client(&redis, 1);
    let group_rate = Some(Rate { jobs: 10, per_ms: 1_000, burst: 5 });
    set(&client, Settings { group_rate, ..Settings::default() });
    put(&client, JOBS, |_| Put { group: Some(Bytes::from_static(b"g")), ..Put::new(topic(), "x") });
    let taken = |max, wait_ms| match client.ask(wait_for(max, wait_ms, Some(600_000))) {
        Ok(Reply::Jobs(jobs)) => jobs.len(),
        other => panic!("{other:?}"),
    };
    let mut given = taken(10, 0);
    // A full burst comes into line, one of it is taken, and the rate has room again meanwhile.
    std::thread::sleep(Duration::from_millis(600));
    given += taken(1, 0);
    std::thread::sleep(Duration::from_millis(500));
    while given < JOBS {
        let more = taken(10, 30_000);
        assert!(more > 0, "{given} of {JOBS} were given, the others are forgotten");
        given += more;
    }
}
