//! One shard of a Redis Cluster is dead: what lives goes on, and what does not says why.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dormouse_check::conformance::client::Client;
use dormouse_check::harness::redis::wait::wait_for;
use dormouse_check::harness::redis::{RedisCluster, RedisConfig};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::op::{LeasedJob, Put, PutReply, Reserve};
use dormouse_core::topic::TopicName;
use dormouse_redis::{Options, RedisBackend};

/// A request that waits for a dead shard takes 10 s.
const SOON: Duration = Duration::from_secs(5);
const BETWEEN: Duration = Duration::from_millis(50);
/// The load of `dead_shard_table`.
const CALLERS: usize = 4;
const CALLS: usize = 500;
const RUNS: usize = 3;

fn cluster(full_coverage: &str) -> RedisCluster {
    let extra = vec![format!("cluster-require-full-coverage {full_coverage}")];
    RedisCluster::with(3, 0, &RedisConfig { cluster: true, extra, ..RedisConfig::default() })
}

fn client(cluster: &RedisCluster) -> Client {
    let options = Options { partitions: Some(8), ..Options::default() };
    Client::new(Arc::new(RedisBackend::open(&cluster.url(), options).unwrap()))
}

fn topic() -> TopicName {
    TopicName::new("t").unwrap()
}

fn put(client: &Client) -> Result<PutReply, Error> {
    match client.ask(Command::Put(vec![Put::new(topic(), "x")])) {
        Ok(Reply::Put(mut items)) => items.remove(0),
        Err(error) => Err(error),
        other => panic!("a put is answered with {other:?}"),
    }
}

fn reserve(client: &Client, max: usize, wait_ms: i64) -> (Vec<LeasedJob>, Duration) {
    let asked_at = Instant::now();
    let reserve = Reserve { topics: vec![topic()], max, wait_ms, ttr_ms: None, session: None };
    match client.ask(Command::Reserve(reserve)) {
        Ok(Reply::Jobs(jobs)) => (jobs, asked_at.elapsed()),
        other => panic!("a reserve is answered with {other:?}"),
    }
}

/// `/readyz` was 200, the log empty, and the answer that Redis had not answered.
#[test]
fn a_cluster_that_is_down_is_not_ready_and_says_why() {
    let mut cluster = cluster("yes");
    let client = client(&cluster);
    put(&client).unwrap();
    client.ask(Command::Get(Vec::new())).unwrap();
    cluster.kill(0);
    wait_for("it is not ready", || client.ask(Command::Get(Vec::new())).is_err());
    let pending: Vec<_> =
        (0..8).map(|_| client.send(Command::Put(vec![Put::new(topic(), "x")]))).collect();
    let errors: Vec<Error> = pending
        .into_iter()
        .map(|pending| match pending.wait() {
            Ok(Reply::Put(mut items)) => items.remove(0).unwrap_err(),
            Err(error) => error,
            other => panic!("{other:?}"),
        })
        .collect();
    let says_why = |error: &Error| {
        let is_away = matches!(error.code, Code::Unavailable | Code::Unconfirmed);
        is_away && error.text.contains("127.0.0.1:") && error.text.contains("CLUSTERDOWN")
    };
    assert!(errors.iter().any(says_why), "{errors:?}");
}

/// Half of the puts, and every reserve, waited for 10 s and failed.
#[test]
fn a_dead_shard_costs_the_others_nothing() {
    let mut cluster = cluster("no");
    let client = client(&cluster);
    for _ in 0..64 {
        put(&client).unwrap();
    }
    cluster.kill(0);
    // Those that are under way notice it.
    let noticing: Vec<_> =
        (0..16).map(|_| client.send(Command::Put(vec![Put::new(topic(), "x")]))).collect();
    wait_for("puts without a key go to those that live", || {
        let asked_at = Instant::now();
        (0..16).all(|_| put(&client).is_ok()) && asked_at.elapsed() < SOON
    });
    let (jobs, took) = reserve(&client, 1, 0);
    assert!(jobs.len() == 1 && took < SOON, "{} jobs after {took:?}", jobs.len());
    let (jobs, took) = reserve(&client, 20, 1_000);
    assert!(jobs.len() == 20 && took < SOON, "{} jobs after {took:?}", jobs.len());
    // All that is left; then one that waits gets what is put later.
    while !reserve(&client, 200, 0).0.is_empty() {}
    let reserving =
        Reserve { topics: vec![topic()], max: 1, wait_ms: 20_000, ttr_ms: None, session: None };
    let waiting = client.send(Command::Reserve(reserving));
    thread::sleep(BETWEEN);
    let put_at = Instant::now();
    put(&client).unwrap();
    assert!(matches!(waiting.wait(), Ok(Reply::Jobs(jobs)) if jobs.len() == 1));
    assert!(put_at.elapsed() < SOON, "delivered after {:?}", put_at.elapsed());
    noticing.into_iter().for_each(|pending| drop(pending.wait()));
}

/// How long calls took, from shortest to longest.
struct Took(Vec<Duration>);

impl Took {
    fn of(mut took: Vec<Duration>) -> Took {
        took.sort_unstable();
        Took(took)
    }

    fn percentile(&self, percent: usize) -> Duration {
        self.0[(self.0.len() - 1) * percent / 100]
    }
}

/// Puts without a key, and reserves of one job, by several callers at once.
fn load(client: &Client, calls: usize) -> (Took, Took) {
    let call = || {
        let (mut puts, mut reserves) = (Vec::new(), Vec::new());
        for _ in 0..calls {
            let asked_at = Instant::now();
            put(client).unwrap();
            puts.push(asked_at.elapsed());
            let (jobs, took) = reserve(client, 1, 0);
            reserves.push(took);
            let tokens = jobs.iter().map(|job| job.token).collect();
            client.ask(Command::Ack(tokens)).unwrap();
        }
        (puts, reserves)
    };
    thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(call)).collect();
        let (mut puts, mut reserves) = (Vec::new(), Vec::new());
        for caller in callers {
            let (put, reserved) = caller.join().unwrap();
            puts.extend(put);
            reserves.extend(reserved);
        }
        (Took::of(puts), Took::of(reserves))
    })
}

/// The table of a dead shard: `cargo test --release -p dormouse-check --test redis_shard_away --
/// --ignored --nocapture dead_shard_table`. The bar is 2 for both p99.
#[test]
#[ignore = "measures latencies: for a machine that does nothing else"]
fn dead_shard_table() {
    eprintln!("| run | | p50 us before | after | p99 us before | after | p99 ratio |");
    eprintln!("|---|---|---|---|---|---|---|");
    for run in 1..=RUNS {
        let mut cluster = cluster("no");
        let client = client(&cluster);
        load(&client, CALLS / 5);
        let before = load(&client, CALLS);
        cluster.kill(0);
        let noticing: Vec<_> =
            (0..16).map(|_| client.send(Command::Put(vec![Put::new(topic(), "x")]))).collect();
        noticing.into_iter().for_each(|pending| drop(pending.wait()));
        let after = load(&client, CALLS);
        for (verb, before, after) in
            [("put", &before.0, &after.0), ("reserve", &before.1, &after.1)]
        {
            let [p50, p99] = [50, 99]
                .map(|percent| [before, after].map(|took| took.percentile(percent).as_micros()));
            let ratio = p99[1] as f64 / p99[0] as f64;
            eprintln!(
                "| {run} | {verb} | {} | {} | {} | {} | {ratio:.2} |",
                p50[0], p50[1], p99[0], p99[1]
            );
        }
    }
}
