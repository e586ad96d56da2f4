//! Bugs of the backend on Redis, each as a test with a name, on real servers.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::HashSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dormouse_check::conformance::client::{Client, Pending};
use dormouse_check::harness::redis::wait::wait_for;
use dormouse_check::harness::redis::{RedisConfig, RedisServer, Reply as Raw};
use dormouse_core::backend::{Answer, Backend};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::State;
use dormouse_core::limits::{BODY_BYTES_MAX, REPLY_BYTES_MAX};
use dormouse_core::meter::MeterValue;
use dormouse_core::op::{
    EndReply, LeasedJob, List, ListOrder, ListRange, Lock, PauseTopic, Put, PutReply, Reserve,
    SetTopic, Stats,
};
use dormouse_core::topic::{Settings, TopicName};
use dormouse_redis::{Level, ManualClock, Options, RedisBackend};

/// Most priorities in use in a topic on Redis.
const PRIORITIES_MAX: u32 = 64;
const BETWEEN: Duration = Duration::from_millis(5);

fn redis() -> RedisServer {
    RedisServer::start(RedisConfig::default())
}

fn open(redis: &RedisServer, partitions: u16) -> RedisBackend {
    let options = Options { level: Level::Applied, partitions: Some(partitions), clock: None };
    RedisBackend::open(&redis.url(), options).unwrap()
}

/// A Dormouse server on this Redis, and its only client.
fn client(redis: &RedisServer, partitions: u16) -> Client {
    Client::new(Arc::new(open(redis, partitions)))
}

fn topic() -> TopicName {
    named("t")
}

fn named(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

fn job(priority: u32) -> Put {
    Put { priority: Some(priority), ..Put::new(topic(), "x") }
}

fn put(client: &Client, puts: Vec<Put>) -> Vec<Result<PutReply, Error>> {
    match client.ask(Command::Put(puts)) {
        Ok(Reply::Put(items)) => items,
        other => panic!("puts are answered with {other:?}"),
    }
}

fn must_put(client: &Client, puts: Vec<Put>) {
    for item in put(client, puts) {
        item.unwrap();
    }
}

fn reserving(max: usize, wait_ms: i64) -> Reserve {
    Reserve { topics: vec![topic()], max, wait_ms, ttr_ms: None, session: None }
}

fn reserve(client: &Client, max: usize, wait_ms: i64) -> Vec<LeasedJob> {
    jobs(client.ask(Command::Reserve(reserving(max, wait_ms))))
}

fn jobs(answer: Answer) -> Vec<LeasedJob> {
    match answer {
        Ok(Reply::Jobs(jobs)) => jobs,
        other => panic!("a reserve is answered with {other:?}"),
    }
}

fn priorities(jobs: &[LeasedJob]) -> Vec<u32> {
    jobs.iter().map(|job| job.priority).collect()
}

fn ack(jobs: &[LeasedJob]) -> Command {
    Command::Ack(jobs.iter().map(|job| job.token).collect())
}

fn must_ack(client: &Client, jobs: &[LeasedJob]) {
    is_acked(client.ask(ack(jobs)));
}

fn is_acked(answer: Answer) {
    match answer {
        Ok(Reply::Ended(items)) => {
            items.iter().for_each(|item| assert_eq!(item, &Ok(EndReply::Done)));
        }
        other => panic!("acks are answered with {other:?}"),
    }
}

/// One job of each of as many priorities as there may be.
fn put_all_priorities(client: &Client) {
    must_put(client, (0..PRIORITIES_MAX).map(job).collect());
}

/// Reserves that wait; they are parked when this returns.
fn callers(client: &Client, waiters: usize) -> Vec<Pending> {
    let wait = || client.send(Command::Reserve(reserving(1, 30_000)));
    let callers: Vec<Pending> = (0..waiters).map(|_| wait()).collect();
    let stats = || client.ask(Command::Stats(Stats { topic: Some(topic()) }));
    wait_for("the callers", || match stats() {
        Ok(Reply::Stats(stats)) => stats.waiters == waiters as u64,
        _ => false,
    });
    callers
}

/// Each server spread locks over as many partitions as it gives to topics.
#[test]
fn servers_with_different_partitions_exclude_each_other_from_locks() {
    let redis = redis();
    let (one, other) = (client(&redis, 1), client(&redis, 4));
    for name in 0..16 {
        let lock = |owner: &'static str| {
            let name = format!("lock {name}").into();
            Command::Lock(Lock { name, owner: owner.into(), ttl_ms: 60_000, wait_ms: 0 })
        };
        one.ask(lock("one")).unwrap();
        let refusal = other.ask(lock("other")).unwrap_err();
        assert_eq!(refusal.code, Code::Conflict, "lock {name}: {refusal}");
    }
}

/// All keys, as a replica has them that knows nothing of what comes after.
fn copy(redis: &RedisServer) -> Vec<(Vec<u8>, Vec<u8>)> {
    let keys = redis.must(&["KEYS", "*"]);
    let keys = keys.list().iter().map(Raw::bytes);
    keys.map(|key| (key.to_vec(), redis.must(&[b"DUMP", key]).bytes().to_vec())).collect()
}

/// The effect of a failover to the owner of the copy.
fn fail_over(redis: &RedisServer, copy: &[(Vec<u8>, Vec<u8>)]) {
    redis.must(&["FLUSHALL"]);
    for (key, value) in copy {
        redis.must(&[b"RESTORE", &key[..], b"0", value]);
    }
}

/// Versions were counted, so that after a failover another configuration got the same one. Whoever
/// knew the first took it for the second, and did not look where its jobs were.
#[test]
fn a_version_that_a_failover_took_back_does_not_hide_jobs() {
    let redis = redis();
    let (one, other) = (client(&redis, 1), client(&redis, 1));
    must_put(&one, vec![job(1)]);
    assert_eq!(priorities(&reserve(&other, 1, 0)), [1]);
    let copy = copy(&redis);
    must_put(&one, vec![job(9)]);
    fail_over(&redis, &copy);
    must_put(&other, vec![job(7)]);
    assert_eq!(priorities(&reserve(&one, 9, 0)), [7]);
    must_put(&one, vec![job(3)]);
    assert_eq!(priorities(&reserve(&other, 9, 0)), [3]);
}

/// To make room for the new priority, the old one was given up that the same batch needs.
#[test]
fn an_old_priority_beside_one_too_many_is_kept() {
    let redis = redis();
    let client = client(&redis, 1);
    put_all_priorities(&client);
    let all = reserve(&client, 64, 0);
    assert_eq!(all.len(), 64);
    must_ack(&client, &all);
    assert_eq!(reserve(&client, 64, 0), []);
    must_put(&client, vec![job(5), job(100)]);
    must_put(&client, vec![job(5)]);
    assert_eq!(priorities(&reserve(&client, 64, 0)), [5, 5, 100]);
}

/// All commands of the same script batch got the error.
#[test]
fn a_priority_too_many_refuses_only_its_own_put() {
    let redis = redis();
    let client = client(&redis, 1);
    put_all_priorities(&client);
    let first = reserve(&client, 1, 0);
    let commands = vec![
        Command::Put(vec![job(1_000)]),
        Command::Put(vec![job(63)]),
        ack(&first),
        Command::Reserve(reserving(1, 0)),
    ];
    let mut answers = client.send_all(commands).into_iter().map(Pending::wait);
    let mut next_put = || match answers.next() {
        Some(Ok(Reply::Put(mut items))) => items.pop().unwrap(),
        other => panic!("a put is answered with {other:?}"),
    };
    assert_eq!(next_put().unwrap_err().code, Code::Invalid);
    next_put().unwrap();
    is_acked(answers.next().unwrap());
    assert_eq!(priorities(&jobs(answers.next().unwrap())), [1]);
}

/// Only a server that had polled a priority knew that it was empty.
#[test]
fn a_producer_that_never_looks_can_use_new_priorities() {
    let redis = redis();
    let (producer, consumer) = (client(&redis, 1), client(&redis, 1));
    for priority in 0..PRIORITIES_MAX + 6 {
        must_put(&producer, vec![job(priority)]);
        let taken = reserve(&consumer, 1, 0);
        assert_eq!(priorities(&taken), [priority]);
        must_ack(&consumer, &taken);
    }
}

/// One poll serves a number of reserves in their order: it was always for the
/// waiting ones, and a reserve that did not wait was never served.
fn is_served_behind(partitions: u16, waiters: usize) {
    let redis = redis();
    let client = client(&redis, partitions);
    let callers = callers(&client, waiters);
    for _ in 0..4 {
        let asked_at = Instant::now();
        assert_eq!(reserve(&client, 1, 0), []);
        let took = asked_at.elapsed();
        assert!(took < Duration::from_secs(4), "answered after {took:?}");
    }
    assert!(!callers.iter().any(Pending::is_answered));
}

#[test]
fn who_does_not_wait_is_served_behind_many_who_do() {
    is_served_behind(1, 140);
}

#[test]
fn who_does_not_wait_is_served_behind_many_on_several_partitions() {
    is_served_behind(8, 40);
}

/// A look was under way, and the reserve waited for it however long it took. Now it is answered
/// after the timeout with that look and with the last one.
#[test]
fn a_frozen_redis_does_not_keep_who_waits() {
    let mut redis = redis();
    let client = client(&redis, 1);
    must_put(&client, vec![job(1)]);
    assert_eq!(reserve(&client, 1, 0).len(), 1);
    redis.freeze();
    let waiting = client.send(Command::Reserve(reserving(1, 1_000)));
    wait_for("an answer", || waiting.is_answered());
    // A backend that ends waits for its Redis.
    redis.thaw();
    match waiting.wait() {
        Err(error) => assert_eq!(error.code, Code::Unavailable, "{error}"),
        answer => assert_eq!(jobs(answer), []),
    }
}

/// Scripts that were sent.
fn calls(backend: &RedisBackend) -> u64 {
    let meters = backend.meters();
    let calls = meters.iter().find(|meter| meter.name == "redis_calls_total").unwrap();
    match calls.value {
        MeterValue::Counter(calls) => calls,
        _ => panic!("calls are counted"),
    }
}

/// Two script batches can be in flight. The first polls for a waiter; a later reserve went with the
/// second and would have taken the job.
#[test]
fn who_waits_is_served_before_those_who_come_during_its_look() {
    let mut redis = redis();
    let backend = Arc::new(open(&redis, 1));
    let client = Client::new(Arc::clone(&backend) as Arc<dyn Backend>);
    must_put(&client, vec![job(1)]);
    must_ack(&client, &reserve(&client, 1, 0));
    redis.freeze();
    let before = calls(&backend);
    let waiting = client.send(Command::Reserve(reserving(1, 20_000)));
    wait_for("its look", || calls(&backend) > before);
    let later = client.send(Command::Reserve(reserving(1, 0)));
    let puts: Vec<Pending> = (0..24).map(|_| client.send(Command::Put(vec![job(1)]))).collect();
    wait_for("a second script batch", || calls(&backend) > before + 1);
    redis.thaw();
    let ids = puts.into_iter().map(|put| match put.wait() {
        Ok(Reply::Put(items)) => items[0].as_ref().unwrap().id,
        other => panic!("a put is answered with {other:?}"),
    });
    let (first, served) = (ids.min(), jobs(waiting.wait()));
    assert_eq!(served.first().map(|job| job.id), first);
    assert_eq!(jobs(later.wait()).len(), 1);
}

/// A look is under way when the backend closes: what it finds must not stay leased to nobody.
#[test]
fn what_is_found_for_nobody_is_given_back_before_the_end() {
    let mut redis = redis();
    let backend = Arc::new(open(&redis, 1));
    let client = Client::new(Arc::clone(&backend) as Arc<dyn Backend>);
    must_put(&client, vec![Put { delay_ms: Some(300), ..job(1) }]);
    let due_at = Instant::now() + Duration::from_millis(310);
    redis.freeze();
    let before = calls(&backend);
    let waiting = client.send(Command::Reserve(reserving(1, 20_000)));
    wait_for("its look", || calls(&backend) > before);
    let closing = thread::spawn(move || backend.close());
    wait_for("the end of the wait", || waiting.is_answered());
    wait_for("the job", || due_at.elapsed() > Duration::ZERO);
    redis.thaw();
    closing.join().unwrap();
    assert_eq!(jobs(waiting.wait()), []);
    let found = reserve(&self::client(&redis, 1), 1, 0);
    assert_eq!(found.len(), 1, "it is leased to nobody");
}

/// Scripts that this Redis refused because it has no replica.
fn refusals(redis: &RedisServer) -> u64 {
    let errors = redis.info_all("errorstats");
    let refused = errors.get("errorstat_NOREPLICAS").and_then(|text| text.strip_prefix("count="));
    refused.map_or(0, |count| count.parse().unwrap())
}

/// The job was due and every look for it was refused, so the next look followed at once.
#[test]
fn a_redis_that_refuses_is_not_asked_all_the_time() {
    const WATCHED: Duration = Duration::from_secs(2);
    let redis = redis();
    let client = client(&redis, 1);
    let waiting = callers(&client, 1).remove(0);
    must_put(&client, vec![Put { delay_ms: Some(300), ..job(1) }]);
    redis.must(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    wait_for("a refusal", || refusals(&redis) > 0);
    let deadline = Instant::now() + WATCHED;
    while Instant::now() < deadline {
        let refused = refusals(&redis);
        assert!(refused <= 100, "refused {refused} times within {WATCHED:?}");
        thread::sleep(BETWEEN);
    }
    redis.must(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    assert_eq!(jobs(waiting.wait()).len(), 1);
}

/// It waited for its thread in a way that a runtime forbids.
#[test]
fn a_backend_opens_inside_a_runtime() {
    let redis = redis();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let backend = runtime.block_on(async { open(&redis, 1) });
    must_put(&Client::new(Arc::new(backend)), vec![job(1)]);
}

/// Takes so many jobs, by replies that keep to their size. While Redis is slow, a reply may be
/// empty though there are jobs: a partition that has not answered for half a second counts as away.
fn take_all(client: &Client, reserve: &Reserve, count: usize) {
    let ends_at = Instant::now() + Duration::from_secs(60);
    let mut taken = 0;
    while taken < count {
        assert!(Instant::now() < ends_at, "{taken} of {count} jobs were given");
        let jobs = jobs(client.ask(Command::Reserve(reserve.clone())));
        let bytes: usize = jobs.iter().map(|job| job.body.len()).sum();
        assert!(bytes as u64 <= REPLY_BYTES_MAX, "{} jobs with {bytes} bytes", jobs.len());
        taken += jobs.len();
        if !jobs.is_empty() {
            must_ack(client, &jobs);
        }
    }
    assert_eq!(taken, count);
}

/// As much work as one reply holds, and half as much again.
const LARGE_JOBS: usize = 24;

fn large_job(topic: TopicName) -> Put {
    Put::new(topic, vec![7; BODY_BYTES_MAX])
}

/// Each of several looks for a reply had the size of a whole reply.
#[test]
fn a_reply_of_many_jobs_keeps_to_its_size() {
    let redis = redis();
    let client = client(&redis, 1);
    must_put(&client, vec![large_job(topic()); LARGE_JOBS]);
    take_all(&client, &reserving(200, 0), LARGE_JOBS);
}

/// As above, with a look per topic.
#[test]
fn a_reply_of_several_topics_keeps_to_its_size() {
    let redis = redis();
    let client = client(&redis, 1);
    let topics = vec![named("a"), named("b")];
    for topic in &topics {
        must_put(&client, vec![large_job(topic.clone()); LARGE_JOBS / 2]);
    }
    take_all(&client, &Reserve { topics, ..reserving(64, 0) }, LARGE_JOBS);
}

/// A request that waited when a job was put forgot the pause: it got the job with the timed poll.
#[test]
fn the_end_of_a_pause_brings_what_was_put_meanwhile() {
    const PAUSE: Duration = Duration::from_millis(1_200);
    let redis = redis();
    let (one, other) = (client(&redis, 1), client(&redis, 1));
    let asked_at = Instant::now();
    let for_ms = Some(i64::try_from(PAUSE.as_millis()).unwrap());
    one.ask(Command::Pause(PauseTopic { topic: topic(), for_ms })).unwrap();
    let paused_at = Instant::now();
    let waiting = callers(&other, 1).remove(0);
    must_put(&one, vec![job(1)]);
    assert_eq!(jobs(waiting.wait()).len(), 1);
    assert!(asked_at.elapsed() >= PAUSE, "the pause has ended after {:?}", asked_at.elapsed());
    let late = paused_at.elapsed().saturating_sub(PAUSE);
    assert!(late < Duration::from_secs(2), "{late:?} after the end of the pause");
}

/// Jobs there are in Redis, in whatever state.
fn jobs_kept(redis: &RedisServer) -> i64 {
    redis.must(&["HLEN", "dormouse:{t/0}:j"]).int()
}

/// Jobs that die unseen: their first lease is the last, and nobody ends it.
fn put_doomed(client: &Client) {
    let doomed = Put { attempts_max: Some(1), ttr_ms: Some(1), ..job(1) };
    must_put(client, vec![doomed; 20]);
    assert_eq!(reserve(client, 64, 0).len(), 20);
}

/// Dead jobs went only when somebody counted or listed them.
#[test]
fn dead_jobs_go_by_puts_and_reserves_alone() {
    let redis = redis();
    let client = client(&redis, 1);
    let settings = Settings { dead_ttl_ms: Some(100), ..Settings::default() };
    client.ask(Command::from(SetTopic { topic: topic(), settings })).unwrap();
    put_doomed(&client);
    wait_for("reserves to remove the dead", || {
        assert_eq!(reserve(&client, 1, 0), []);
        jobs_kept(&redis) == 0
    });
    put_doomed(&client);
    let mut puts = 0;
    wait_for("puts to remove the dead", || {
        must_put(&client, vec![Put { delay_ms: Some(3_600_000), ..job(1) }]);
        puts += 1;
        jobs_kept(&redis) == puts
    });
}

/// A page of jobs that had died unseen was taken for the end of the list.
#[test]
fn jobs_that_died_unseen_do_not_end_a_list() {
    for order in [ListOrder::Usual, ListOrder::Due] {
        let redis = redis();
        let clock = ManualClock::new(1_767_225_600_000);
        let partitions = Some(1);
        let options = Options { partitions, clock: Some(clock.clone()), ..Options::default() };
        let client = Client::new(Arc::new(RedisBackend::open(&redis.url(), options).unwrap()));
        let doomed = Put { expires_after_ms: Some(1), ..job(1) };
        must_put(&client, vec![doomed.clone(); 1_000]);
        must_put(&client, vec![job(1), job(1), doomed.clone(), doomed, job(1)]);
        clock.advance(10);
        let range = ListRange { order, ..ListRange::default() };
        let list = List { topic: topic(), state: State::Ready, cursor: None, limit: 4, range };
        match client.ask(Command::List(list)) {
            Ok(Reply::Page(page)) => {
                let ids: HashSet<_> = page.jobs.iter().map(|view| view.job.id).collect();
                assert_eq!((page.jobs.len(), ids.len()), (3, 3), "{order:?}");
            }
            other => panic!("a list is answered with {other:?}"),
        }
    }
}

/// Any token of the job was taken for that of the session's lease.
#[test]
fn an_ack_that_comes_late_does_not_take_a_lease_from_a_session() {
    let redis = redis();
    let client = client(&redis, 1);
    must_put(&client, vec![job(1)]);
    let Ok(Reply::Session(session)) = client.ask(Command::OpenSession) else {
        panic!("no session");
    };
    let short = Reserve { ttr_ms: Some(50), ..reserving(1, 0) };
    let old = jobs(client.ask(Command::Reserve(short)));
    assert_eq!(old.len(), 1);
    let bound = Reserve { session: Some(session), ..reserving(1, 10_000) };
    assert_eq!(jobs(client.ask(Command::Reserve(bound))).len(), 1);
    let Ok(Reply::Ended(items)) = client.ask(ack(&old)) else { panic!("no answer to the ack") };
    assert_eq!(items[0].as_ref().unwrap_err().code, Code::LeaseLost);
    client.ask(Command::CloseSession(session)).unwrap();
    assert_eq!(reserve(&client, 1, 10_000).len(), 1, "the session gave its lease back");
}

/// The poll was sent in a script batch that had no room for the put of the same batch.
#[test]
fn a_reserve_sees_what_its_batch_put_before_it_under_load() {
    let redis = redis();
    let client = client(&redis, 1);
    for round in 0..200 {
        let load = (0..6).map(|_| Command::Put(vec![job(1_000); 64]));
        let load: Vec<Pending> = load.map(|command| client.send(command)).collect();
        let batch = vec![Command::Put(vec![job(1)]), Command::Reserve(reserving(1, 0))];
        let taken = jobs(client.send_all(batch).remove(1).wait());
        assert_eq!(priorities(&taken), [1], "round {round}");
        must_ack(&client, &taken);
        for pending in load {
            pending.wait().unwrap();
        }
    }
}

#[test]
fn a_redis_that_lost_its_data_gives_no_shard_twice() {
    let redis = redis();
    let old = client(&redis, 1);
    must_put(&old, vec![job(1)]);
    redis.must(&["FLUSHALL"]);
    // It finds out by the next script.
    must_put(&old, vec![job(1)]);
    let new = client(&redis, 1);
    let other = put(&new, vec![Put::new(named("other"), "y")]).remove(0).unwrap();
    let taken = reserve(&old, 2, 0);
    assert_eq!(taken.len(), 1, "what was put after the loss is there");
    assert_ne!(taken[0].id.0 >> 40, other.id.0 >> 40, "two topics have the same shard");
    // A server that was not there before finds the job by its id.
    is_acked(new.ask(ack(&taken)));
}

/// To ask whether a put needs a task turned the wheel of partitions, and to put turned it again.
#[test]
fn puts_before_a_reserve_spread_over_all_partitions() {
    let redis = redis();
    let client = client(&redis, 2);
    for _ in 0..10 {
        let later = Put { delay_ms: Some(3_600_000), ..job(1) };
        let batch = vec![Command::Put(vec![later]), Command::Reserve(reserving(1, 0))];
        client.send_all(batch).into_iter().for_each(|pending| drop(pending.wait().unwrap()));
    }
    let other = redis.must(&["HLEN", "dormouse:{t/1}:j"]).int();
    assert_eq!((jobs_kept(&redis), other), (5, 5));
}

/// Its last number is where nobody looks any more, so it would be given again.
#[test]
fn a_header_of_an_earlier_layout_is_refused() {
    let redis = redis();
    let client = client(&redis, 1);
    redis.must(&["HSET", "dormouse:{t/0}:s", "n", "7"]);
    let refused = put(&client, vec![job(1)]).remove(0).unwrap_err();
    assert!(refused.text.contains("before 0.1"), "{refused:?}");
    assert_eq!(jobs_kept(&redis), 0);
}

/// The topic got its partitions for good, and the advice to make it with one came too late.
#[test]
fn what_partitions_cannot_keep_does_not_create_its_topic() {
    let redis = redis();
    let settings = Settings { leased_max: Some(3), ..Settings::default() };
    let set = || Command::from(SetTopic { topic: topic(), settings: settings.clone() });
    let grouped = || Put { group: Some("g".into()), key: Some("k".into()), ..job(1) };
    let several = client(&redis, 8);
    let refusals =
        [several.ask(set()).unwrap_err(), put(&several, vec![grouped()])[0].clone().unwrap_err()];
    for refusal in refusals {
        assert!(refusal.to_string().contains("--redis-partitions 1"), "{refusal:?}");
    }
    // As it says.
    let one = client(&redis, 1);
    one.ask(set()).unwrap();
    must_put(&one, vec![grouped()]);
    // The topic is there now, and has one partition, whatever a new one would have.
    several.ask(set()).unwrap();
    must_put(&several, vec![grouped()]);
}
