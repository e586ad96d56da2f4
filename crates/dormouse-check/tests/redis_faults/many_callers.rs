//! Enough callers that two script batches are in flight at a time, while answers are lost and
//! requests arrive late: each command is done once, and a batch in its order.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use dormouse_check::faults::relay::Relay;
use dormouse_check::generate::rng::Rng;
use dormouse_check::generate::seed::{seed, soak};
use dormouse_check::harness::process::client::Client;
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::JobId;
use dormouse_core::op::{
    Cancel, EndReply, LeasedJob, OnConflict, Put, PutOutcome, Reserve, Stats, Target,
};
use dormouse_core::topic::TopicName;
use dormouse_redis::Level;

use crate::{Took, open, work};

const CALLERS: u64 = 96;
const TOPIC: &str = "callers";

/// The answers that callers got.
#[derive(Default)]
struct Told {
    put: HashSet<JobId>,
    done: HashSet<JobId>,
    keyed: u64,
}

struct Caller<'a> {
    client: Client,
    told: &'a Mutex<Told>,
    number: u64,
}

fn topic() -> TopicName {
    TopicName::new(TOPIC).expect("a good name")
}

impl Caller<'_> {
    fn put(&self) {
        let put = Put::new(topic(), "work");
        let Ok(Reply::Put(items)) = self.client.call_one(Command::Put(vec![put])) else {
            panic!("a put is answered")
        };
        let reply = items[0].as_ref().expect("a good put");
        assert_eq!(reply.outcome, PutOutcome::Created);
        assert!(self.told().put.insert(reply.id), "{:?} was given twice", reply.id);
    }

    /// Takes what there is; false = there was nothing.
    fn consume(&self, wait_ms: i64) -> bool {
        let topics = vec![topic()];
        let reserve = Reserve { topics, max: 1, wait_ms, ttr_ms: None, session: None };
        match self.client.call_one(Command::Reserve(reserve)) {
            Ok(Reply::Jobs(jobs)) => {
                jobs.iter().for_each(|job| self.ack(job));
                !jobs.is_empty()
            }
            other => panic!("{other:?}"),
        }
    }

    fn ack(&self, job: &LeasedJob) {
        assert_eq!(job.attempt, 1, "{:?} was given to another", job.id);
        match self.client.call_one(Command::Ack(vec![job.token])) {
            Ok(Reply::Ended(ended)) => assert_eq!(ended, [Ok(EndReply::Done)], "{:?}", job.id),
            other => panic!("{other:?}"),
        }
        assert!(self.told().done.insert(job.id), "{:?} was done twice", job.id);
    }

    /// Each of these is possible only after the one before it.
    fn keyed(&self) {
        let key = Bytes::from(format!("key {}", self.number));
        let put = || {
            let put = Put::new(topic(), "later");
            let on_conflict = OnConflict::Reject;
            Command::Put(vec![Put {
                delay_ms: Some(3_600_000),
                key: Some(key.clone()),
                on_conflict,
                ..put
            }])
        };
        let cancel = || {
            let target = Target::Key { topic: topic(), key: key.clone() };
            Command::Cancel(vec![Cancel { target, unless_leased: false }])
        };
        let answers = self.client.call(vec![put(), cancel(), put(), cancel()]).expect("answers");
        let is_good = |answer: &_| match answer {
            Ok(Reply::Put(items)) => items[0].is_ok(),
            Ok(Reply::Changed(items)) => items[0].is_ok(),
            _ => false,
        };
        assert!(answers.iter().all(is_good), "{answers:?}");
        self.told().keyed += 2;
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().expect("nobody panicked")
    }
}

/// Works until `stop`.
fn call(caller: &Caller<'_>, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        match caller.number % 8 {
            0 => caller.keyed(),
            1 | 2 => drop(caller.consume(200)),
            3..=5 => caller.put(),
            _ => drop(caller.consume(0)),
        }
    }
}

fn fault(server: &RedisServer, relay: &Relay, rng: &mut Rng) {
    let some = |rng: &mut Rng| Duration::from_millis(1 + rng.below(10));
    match rng.below(4) {
        0 => drop(server.must(&["SCRIPT", "FLUSH"])),
        1 => drop(server.must(&["CLIENT", "KILL", "TYPE", "normal"])),
        2 => relay.lose_answers(some(rng)),
        _ => relay.deliver_late(some(rng), Duration::from_millis(10 + rng.below(40))),
    }
}

fn callers(seed: u64, faults: u64) {
    let _took = Took::new("callers");
    eprintln!("callers: DORMOUSE_SEED={seed}");
    let server = RedisServer::start(RedisConfig::default());
    let relay = Relay::to(&server.address());
    let backend = open(&relay.url(), Level::Applied, None);
    let (told, is_over) = (Mutex::new(Told::default()), AtomicBool::new(false));
    let caller = |number| Caller { client: Client::new(&backend), told: &told, number };
    thread::scope(|scope| {
        for number in 0..CALLERS {
            let (caller, is_over) = (caller(number), &is_over);
            scope.spawn(move || call(&caller, is_over));
        }
        let mut rng = Rng::new(seed);
        for _ in 0..faults {
            work(rng.below(40));
            fault(&server, &relay, &mut rng);
        }
        work(100);
        is_over.store(true, Ordering::Relaxed);
    });
    while caller(CALLERS).consume(0) {}
    // The header of a topic without jobs is not shown.
    caller(CALLERS).put();
    let sequences = sequences(&server);
    let told = told.into_inner().expect("nobody panicked");
    eprintln!("callers: {} puts, {} keyed; {sequences} sequences", told.put.len(), told.keyed);
    assert_eq!(told.put.len(), told.done.len() + 1);
    assert!(told.done.is_subset(&told.put));
    assert_eq!(counted(&backend), (told.put.len() as u64 + told.keyed, told.done.len() as u64));
    assert_eq!(sequences, 2, "two batches were in the air");
}

/// The topic's counters of puts and acks.
fn counted(backend: &Arc<dyn Backend>) -> (u64, u64) {
    match Client::new(backend).call_one(Command::Stats(Stats { topic: Some(topic()) })) {
        Ok(Reply::Stats(stats)) => (stats.counts.puts, stats.counts.acks),
        other => panic!("{other:?}"),
    }
}

/// The number of sequences that sent batches.
fn sequences(server: &RedisServer) -> usize {
    let fields = server.must(&["HKEYS", "dormouse:{callers/0}:s"]);
    fields.list().iter().filter(|field| field.text().starts_with('r')).count()
}

#[test]
fn many_callers_do_each_thing_once() {
    callers(seed(), 60);
}

#[test]
#[ignore = "a campaign: cargo xtask soak"]
fn soak_redis_many_callers() {
    soak(|seed| callers(seed, 300));
}
