//! What `unconfirmed` means on Redis: a change that was made but may be lost, or one that has
//! happened or never will. A refusal stays a refusal, and nothing is done twice.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::sync::Arc;

use dormouse_check::conformance::client::Client;
use dormouse_check::faults::relay::Relay;
use dormouse_check::harness::redis::wait::wait_for;
use dormouse_check::harness::redis::{RedisConfig, RedisServer, Reply as Raw};
use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::JobId;
use dormouse_core::meter::MeterValue;
use dormouse_core::op::{
    Cancel, EndReply, Kick, Kill, KillTarget, LeasedJob, Lock, OnConflict, Put, PutOutcome,
    PutReply, RenewLock, Reschedule, Reserve, Stats, Target, Unlock,
};
use dormouse_core::topic::TopicName;
use dormouse_redis::{Level, Options, RedisBackend};

fn open(url: &str, level: Level) -> (Arc<RedisBackend>, Client) {
    let options = Options { level, partitions: Some(1), clock: None };
    let backend = Arc::new(RedisBackend::open(url, options).unwrap());
    (Arc::clone(&backend), Client::new(backend))
}

fn topic() -> TopicName {
    TopicName::new("t").unwrap()
}

fn job(key: &'static str) -> Put {
    Put { key: Some(key.into()), ..Put::new(topic(), "x") }
}

fn put(client: &Client, put: Put) -> Result<PutReply, Error> {
    match client.ask(Command::Put(vec![put])) {
        Ok(Reply::Put(mut items)) => items.remove(0),
        Err(error) => Err(error),
        other => panic!("a put is answered with {other:?}"),
    }
}

fn reserve(client: &Client, max: usize) -> Vec<LeasedJob> {
    let reserve = Reserve { topics: vec![topic()], max, wait_ms: 0, ttr_ms: None, session: None };
    match client.ask(Command::Reserve(reserve)) {
        Ok(Reply::Jobs(jobs)) => jobs,
        other => panic!("a reserve is answered with {other:?}"),
    }
}

fn jobs(client: &Client) -> u64 {
    match client.ask(Command::Stats(Stats { topic: Some(topic()) })) {
        Ok(Reply::Stats(stats)) => stats.ready,
        Err(error) if error.code == Code::NotFound => 0,
        other => panic!("stats are answered with {other:?}"),
    }
}

fn unconfirmed(backend: &RedisBackend) -> u64 {
    let meters = backend.meters();
    let meter = meters.iter().find(|meter| meter.name == "redis_unconfirmed_total").unwrap();
    match meter.value {
        MeterValue::Counter(value) => value,
        ref other => panic!("{other:?}"),
    }
}

/// The only item of a list, or the error of the command.
fn item(answer: Result<Reply, Error>) -> Result<Reply, Error> {
    match answer? {
        Reply::Put(mut items) => items.remove(0).map(|reply| Reply::Put(vec![Ok(reply)])),
        Reply::Ended(mut items) => items.remove(0).map(|reply| Reply::Ended(vec![Ok(reply)])),
        Reply::Changed(mut items) => items.remove(0).map(|reply| Reply::Changed(vec![Ok(reply)])),
        other => Ok(other),
    }
}

fn by_key(key: &'static str) -> Target {
    Target::Key { topic: topic(), key: key.into() }
}

fn cancel(target: Target) -> Command {
    Command::Cancel(vec![Cancel { target, unless_leased: false }])
}

fn kill(target: Target) -> Command {
    let target = KillTarget::Resting(target);
    Command::Kill(vec![Kill { target, error: None, priority: None }])
}

fn reschedule(target: Target) -> Command {
    Command::Reschedule(vec![Reschedule { target, delay_ms: Some(5), at_ms: None }])
}

fn lock(owner: &'static str) -> Command {
    let (name, owner) = ("L".into(), owner.into());
    Command::Lock(Lock { name, owner, ttl_ms: 60_000, wait_ms: 0 })
}

fn unlock(owner: &'static str) -> Command {
    Command::Unlock(Unlock { name: "L".into(), owner: owner.into() })
}

fn renew(owner: &'static str) -> Command {
    Command::RenewLock(RenewLock { name: "L".into(), owner: owner.into(), ttl_ms: None })
}

/// A primary, and a replica that is up to date.
fn replicated() -> (RedisServer, RedisServer) {
    let primary = RedisServer::start(RedisConfig::default());
    let extra = vec![format!("replicaof {} {}", primary.host(), primary.port())];
    let replica = RedisServer::start(RedisConfig { extra, ..RedisConfig::default() });
    wait_for("the replica is there", || {
        let replica = primary.info_all("replication").remove("slave0");
        replica.is_some_and(|replica| replica.contains("online"))
    });
    (primary, replica)
}

/// A server on the primary. A replica that has just connected may confirm nothing yet.
fn open_replicated(primary: &RedisServer) -> (Arc<RedisBackend>, Client, u64) {
    let (backend, client) = open(&primary.url(), Level::Replicated(1));
    let warm = || Put::new(TopicName::new("warm").unwrap(), "x");
    wait_for("the replica confirms", || put(&client, warm()).is_ok());
    let before = unconfirmed(&backend);
    (backend, client, before)
}

/// Every refusal was answered `unconfirmed: it happened`, and counted.
#[test]
fn without_replicas_a_refusal_stays_a_refusal() {
    let (primary, mut replica) = replicated();
    let (backend, client, before) = open_replicated(&primary);
    put(&client, job("taken")).unwrap();
    let leased = reserve(&client, 1).remove(0);
    put(&client, job("kept")).unwrap();
    let acked = item(client.ask(Command::Ack(vec![leased.token])));
    assert_eq!(acked, Ok(Reply::Ended(vec![Ok(EndReply::Done)])));
    client.ask(lock("alice")).unwrap();
    replica.kill_nine();
    wait_for("the primary notices", || primary.info("replication", "connected_slaves") == "0");

    let keep = put(&client, job("kept")).unwrap();
    assert_eq!(keep.outcome, PutOutcome::Duplicate);
    let gone = item(client.ask(Command::Ack(vec![leased.token])));
    assert_eq!(gone, Ok(Reply::Ended(vec![Ok(EndReply::Gone)])));
    assert_eq!(client.ask(Command::Kick(Kick { topic: topic(), max: 5 })), Ok(Reply::Count(0)));
    let reject = Put { on_conflict: OnConflict::Reject, ..job("kept") };
    for (command, code) in [
        (Command::Put(vec![reject]), Code::Conflict),
        (lock("bob"), Code::Conflict),
        (unlock("bob"), Code::Conflict),
        (renew("bob"), Code::Conflict),
        (cancel(by_key("never")), Code::NotFound),
        (cancel(Target::Id(JobId(leased.id.0 + 99))), Code::NotFound),
        (kill(by_key("never")), Code::NotFound),
        (reschedule(by_key("never")), Code::NotFound),
        (Command::Revive(vec![by_key("never")]), Code::NotFound),
        (Command::Revive(vec![by_key("kept")]), Code::Conflict),
    ] {
        let error = item(client.ask(command.clone())).unwrap_err();
        assert_eq!(error.code, code, "{command:?}: {error}");
    }
    assert_eq!(unconfirmed(&backend), before);
}

/// The text had neither the outcome nor the id, so that who put without a key could not look.
#[test]
fn an_unconfirmed_change_says_what_happened_and_to_which_job() {
    let (primary, mut replica) = replicated();
    let (backend, client, counted) = open_replicated(&primary);
    let before = put(&client, job("before")).unwrap().id;
    replica.kill_nine();
    wait_for("the primary notices", || primary.info("replication", "connected_slaves") == "0");

    let created = put(&client, Put::new(topic(), "x")).unwrap_err();
    let (id, _) = created.job.expect("an id");
    assert_eq!(id, JobId(before.0 + 1));
    assert!(created.text.starts_with(&format!("job {id} was created, but too few replicas")));
    let cancelled = item(client.ask(cancel(Target::Id(id)))).unwrap_err();
    assert!(cancelled.text.starts_with(&format!("job {id} was cancelled, but")), "{cancelled}");
    assert_eq!(cancelled.job.expect("an id").0, id);
    let killed = item(client.ask(kill(by_key("before")))).unwrap_err();
    assert!(killed.text.starts_with("the job was killed, but"), "{killed}");
    let revived = item(client.ask(Command::Revive(vec![by_key("before")]))).unwrap_err();
    assert!(revived.text.starts_with(&format!("job {before} was revived, but")), "{revived}");
    let leased = reserve(&client, 1).remove(0);
    let acked = item(client.ask(Command::Ack(vec![leased.token]))).unwrap_err();
    assert!(acked.text.starts_with(&format!("job {before} was acked, but")), "{acked}");
    let locked = client.ask(lock("alice")).unwrap_err();
    assert!(locked.text.starts_with("the lock was granted (fence "), "{locked}");
    for error in [created, cancelled, killed, revived, acked, locked] {
        assert_eq!(error.code, Code::Unconfirmed, "{error}");
    }
    assert_eq!(unconfirmed(&backend), counted + 6);
    assert_eq!(jobs(&client), 0);
}

/// What Redis remembers of sequences, as if ten minutes had passed and a new server come.
fn forget_sequences(redis: &RedisServer) {
    let key = "dormouse:{t/0}:s";
    for field in redis.must(&["HKEYS", key]).list().iter().map(Raw::bytes) {
        if field.starts_with(b"r") {
            redis.must(&[b"HDEL".as_slice(), key.as_bytes(), field]);
        }
    }
}

/// A server asks for a change, which Redis makes; the reply is lost, and the server cut off until
/// Redis has forgotten the batch. What others put after the change is left alone.
fn check_cut_off(change: Command, made: impl Fn(&Client) -> bool) {
    let redis = RedisServer::start(RedisConfig::default());
    let relay = Relay::to(&redis.address());
    let (_cut_off, client) = open(&relay.url(), Level::Applied);
    let (_near, other) = open(&redis.url(), Level::Applied);
    put(&client, job("k")).unwrap();
    assert_eq!(jobs(&other), 1);
    relay.cut();
    let pending = client.send(change);
    wait_for("the change is made", || made(&other));
    let error = item(pending.wait()).unwrap_err();
    assert_eq!(error.code, Code::Unconfirmed, "{error}");
    put(&other, job("new")).unwrap();
    let before = jobs(&other);
    forget_sequences(&redis);
    relay.heal();
    wait_for("it is back", || client.ask(Command::Get(Vec::new())).is_ok());
    put(&client, Put::new(topic(), "after")).unwrap();
    assert_eq!(jobs(&other), before + 1);
}

#[test]
fn a_put_is_not_repeated_after_redis_forgot_it() {
    check_cut_off(Command::Put(vec![Put::new(topic(), "x")]), |other| jobs(other) == 2);
}

#[test]
fn a_purge_is_not_repeated_after_redis_forgot_it() {
    check_cut_off(Command::Purge(topic().into()), |other| jobs(other) == 0);
}

/// The batch had left, but reached Redis only after its caller was told.
#[test]
fn an_unconfirmed_change_never_happens_later() {
    let mut redis = RedisServer::start(RedisConfig::default());
    let (backend, client) = open(&redis.url(), Level::Applied);
    put(&client, job("k")).unwrap();
    redis.freeze();
    let error = client.ask(Command::Purge(topic().into())).unwrap_err();
    assert_eq!(error.code, Code::Unconfirmed, "{error}");
    assert!(error.text.contains("has happened or never will"), "{error}");
    assert_eq!(unconfirmed(&backend), 1);
    redis.thaw();
    wait_for("Redis answers again", || client.ask(Command::Get(Vec::new())).is_ok());
    put(&client, job("new")).unwrap();
    assert_eq!(jobs(&client), 2);
}
