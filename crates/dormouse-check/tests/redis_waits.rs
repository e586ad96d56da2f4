//! The wait of a reserve or a lock on Redis begins when the request arrives, however long Redis
//! takes for what comes before the wait, and it can be withdrawn from then on.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::sync::Arc;

use dormouse_check::conformance::client::{Client, Pending};
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::op::{Lock, Put, Reserve};
use dormouse_core::topic::TopicName;
use dormouse_redis::{ManualClock, Options, RedisBackend};

const WAIT_MS: i64 = 1_000;

/// A Redis that can be frozen, and a Dormouse server on it.
struct Frozen {
    client: Client,
    clock: ManualClock,
    redis: RedisServer,
}

impl Frozen {
    fn start(partitions: u16) -> Frozen {
        let redis = RedisServer::start(RedisConfig::default());
        let clock = ManualClock::new(1_767_225_600_000);
        let options = Options {
            partitions: Some(partitions),
            clock: Some(clock.clone()),
            ..Options::default()
        };
        let backend = RedisBackend::open(&redis.url(), options).unwrap();
        Frozen { client: Client::new(Arc::new(backend)), clock, redis }
    }

    /// Hands a request over and, when it has arrived, does this; Redis is silent meanwhile.
    fn send_and(&mut self, command: Command, then: impl FnOnce(&Frozen, Ticket)) -> Pending {
        self.redis.freeze();
        let pending = self.client.send(command);
        // It is answered after the request has been taken in, and without Redis.
        self.withdraw(Ticket::next());
        then(self, pending.ticket());
        self.redis.thaw();
        pending
    }

    fn withdraw(&self, ticket: Ticket) {
        assert_eq!(self.client.ask(Command::Withdraw(ticket)), Ok(Reply::Done));
    }

    fn pass_wait(&self, _: Ticket) {
        self.clock.advance(WAIT_MS.unsigned_abs());
    }

    /// Registers the topic, so that a later request need not look it up.
    fn make_topic_known(&self) {
        let later = Put { delay_ms: Some(1_000_000), ..Put::new(topic(), "x") };
        assert!(matches!(self.client.ask(Command::Put(vec![later])), Ok(Reply::Put(_))));
    }
}

fn topic() -> TopicName {
    TopicName::new("t").unwrap()
}

fn reserve() -> Command {
    let topics = vec![topic()];
    Command::Reserve(Reserve { topics, max: 1, wait_ms: WAIT_MS, ttr_ms: None, session: None })
}

fn lock(owner: &'static str, wait_ms: i64) -> Command {
    let (name, owner) = ("name".into(), owner.into());
    Command::Lock(Lock { name, owner, ttl_ms: 1_000_000, wait_ms })
}

fn is_empty(reserved: Pending) {
    assert_eq!(reserved.wait(), Ok(Reply::Jobs(Vec::new())));
}

fn is_refused(locked: Pending) {
    assert_eq!(locked.wait().expect_err("another owner has it").code, Code::Conflict);
}

#[test]
fn a_wait_passes_while_the_topic_is_looked_up() {
    let mut frozen = Frozen::start(1);
    is_empty(frozen.send_and(reserve(), Frozen::pass_wait));
}

#[test]
fn a_wait_passes_while_the_partitions_are_polled() {
    let mut frozen = Frozen::start(2);
    frozen.make_topic_known();
    is_empty(frozen.send_and(reserve(), Frozen::pass_wait));
}

#[test]
fn a_wait_for_a_lock_passes_while_it_is_asked_for() {
    let mut frozen = Frozen::start(1);
    assert!(frozen.client.ask(lock("holder", 0)).is_ok());
    is_refused(frozen.send_and(lock("other", WAIT_MS), Frozen::pass_wait));
}

#[test]
fn a_reserve_is_withdrawn_while_its_topic_is_looked_up() {
    let mut frozen = Frozen::start(1);
    is_empty(frozen.send_and(reserve(), Frozen::withdraw));
}

#[test]
fn a_lock_is_withdrawn_while_it_is_asked_for() {
    let mut frozen = Frozen::start(1);
    assert!(frozen.client.ask(lock("holder", 0)).is_ok());
    is_refused(frozen.send_and(lock("other", WAIT_MS), Frozen::withdraw));
}
