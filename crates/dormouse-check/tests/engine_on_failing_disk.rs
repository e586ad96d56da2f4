//! The engine with its threads on a disk that goes off or fails at any call.
//!
//! Answers hold: a put is there, an ack or cancel is final. After the first failure no
//! mutation is answered ok. Threads decide which call is the n-th, so a run is not repeated to the
//! letter, but every run is judged by the answers it gave.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dormouse_check::faults::disk::{CrashMode, FailKind, SimDisk};
use dormouse_check::generate::rng::Rng;
use dormouse_check::harness::disk::driver::{Driver, SimTime};
use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::{Cancel, EndReply, Put, Reserve, Target};
use dormouse_core::timeline::Timeline;
use dormouse_core::topic::TopicName;
use dormouse_disk::clock::{Reading, TimeSource, VirtualClock};
use dormouse_disk::engine::{Durability, Engine, Options};
use dormouse_disk::store::Sizes;

/// So small that a hundred commands flush and merge.
const SIZES: Sizes = Sizes { memtable_bytes: 2_500, segment_bytes: 4_000, merge_runs: 2 };

struct Answers(Mutex<Sender<Answer>>);

impl Sink for Answers {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        for (_, answer) in answers.drain(..) {
            let _ = self.0.lock().unwrap().send(answer);
        }
    }
}

/// The state of a job, by the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    There,
    Gone,
    /// The answer was an error that says nothing.
    Unknown,
}

struct Client {
    engine: Engine,
    sink: Arc<Answers>,
    answers: Receiver<Answer>,
    jobs: BTreeMap<JobId, (Fate, Bytes)>,
    tokens: Vec<Token>,
    /// The first failure.
    stopped: Option<Error>,
}

impl Client {
    fn open(disk: &SimDisk, durability: Durability) -> Option<Client> {
        Client::open_sized(disk, durability, SIZES)
    }

    fn open_sized(disk: &SimDisk, durability: Durability, sizes: Sizes) -> Option<Client> {
        let options = Options { durability, clock: Arc::new(VirtualClock::new()), sizes };
        let engine = Engine::open_on(Arc::new(disk.mount()), options).ok()?;
        let (sender, answers) = channel();
        let sink = Arc::new(Answers(Mutex::new(sender)));
        let (jobs, tokens) = (BTreeMap::new(), Vec::new());
        Some(Client { engine, sink, answers, jobs, tokens, stopped: None })
    }

    /// One request, one answer, always.
    fn ask(&mut self, command: Command) -> Answer {
        let is_reserve = matches!(command, Command::Reserve(_));
        let request = Request::new(Ticket::next(), command);
        let sink: Arc<dyn Sink> = self.sink.clone();
        let answer = match self.engine.submit(vec![request], sink) {
            Ok(()) => self.answers.recv_timeout(Duration::from_secs(20)).expect("no answer"),
            Err(error) => Err(error),
        };
        match (&answer, &self.stopped) {
            (Ok(_), Some(why)) if !is_reserve => {
                panic!("a mutation is answered ok after the store stopped with {why}")
            }
            (Err(error), None) => self.stopped = Some(error.clone()),
            _ => {}
        }
        answer
    }

    fn put(&mut self, number: u64) {
        let topic = TopicName::new("t").unwrap();
        let body = Bytes::from(format!("body {number} {}", "x".repeat(number as usize % 90)));
        let mut put = Put::new(topic, body.clone());
        put.priority = Some((number % 3) as u32);
        put.key = (number % 4 == 0).then(|| Bytes::from(format!("key {number}")));
        if let Ok(Reply::Put(replies)) = self.ask(Command::Put(vec![put])) {
            let reply = replies[0].as_ref().unwrap();
            assert!(self.jobs.insert(reply.id, (Fate::There, body)).is_none(), "an id twice");
        }
    }

    fn reserve(&mut self) {
        let topics = vec![TopicName::new("t").unwrap()];
        let reserve = Reserve { topics, max: 2, wait_ms: 0, ttr_ms: None, session: None };
        if let Ok(Reply::Jobs(jobs)) = self.ask(Command::Reserve(reserve)) {
            for job in jobs {
                // One whose put was answered by an error may be handed out all the same.
                if let Some((fate, body)) = self.jobs.get(&job.id) {
                    assert_ne!(*fate, Fate::Gone, "job {} is back", job.id);
                    assert_eq!(*body, job.body);
                }
                self.tokens.push(job.token);
            }
        }
    }

    fn ack(&mut self) {
        let Some(token) = self.tokens.pop() else { return };
        let answer = self.ask(Command::Ack(vec![token]));
        self.end(
            token.id,
            matches!(answer, Ok(Reply::Ended(ends)) if ends[0] == Ok(EndReply::Done)),
        );
    }

    fn cancel(&mut self, number: u64) {
        let there: Vec<JobId> = self.jobs.keys().copied().collect();
        let Some(id) = Rng::new(number).pick(&there).copied() else { return };
        if self.jobs[&id].0 == Fate::There {
            let cancel = Cancel { target: Target::Id(id), unless_leased: false };
            let answer = self.ask(Command::Cancel(vec![cancel]));
            self.end(id, matches!(answer, Ok(Reply::Changed(changes)) if changes[0].is_ok()));
        }
    }

    fn end(&mut self, id: JobId, done: bool) {
        if let Some((fate, _)) = self.jobs.get_mut(&id)
            && *fate == Fate::There
        {
            *fate = if done { Fate::Gone } else { Fate::Unknown };
        }
    }

    fn work(&mut self) {
        for number in 0..120 {
            match number % 6 {
                0..3 => self.put(number),
                3 => self.reserve(),
                4 => self.ack(),
                _ => self.cancel(number),
            }
        }
    }
}

/// Whether the disk holds what was answered.
fn check(disk: &SimDisk, jobs: &BTreeMap<JobId, (Fate, Bytes)>) -> Result<(), String> {
    let time =
        SimTime { reading: dormouse_disk::clock::TimeSource::read(&VirtualClock::new()), boot: 9 };
    let mut driver = Driver::open(disk, SIZES, time).map_err(|error| error.to_string())?;
    let machine = driver.store.machine();
    let leased: BTreeMap<JobId, Bytes> =
        machine.lease_images().map(|lease| (lease.job.id, lease.job.content.body)).collect();
    for (id, (fate, body)) in jobs {
        let resting = machine.timeline_mut().find(*id).map_err(|error| error.to_string())?;
        let found = resting.map(|resting| resting.job.content.body);
        let found = found.or_else(|| leased.get(id).cloned());
        match (fate, found) {
            (Fate::There, None) => return Err(format!("the put of {id} was answered, it is lost")),
            (Fate::Gone, Some(_)) => return Err(format!("{id} was ended, and is back")),
            (_, Some(found)) if found != *body => return Err(format!("{id} has {found:?}")),
            _ => {}
        }
    }
    Ok(())
}

/// Calls that the work takes, about.
fn calls() -> u64 {
    let disk = SimDisk::new();
    let mut client = Client::open(&disk, Durability::Synced).unwrap();
    client.work();
    assert!(client.stopped.is_none(), "{:?}", client.stopped);
    let jobs = std::mem::take(&mut client.jobs);
    drop(client);
    disk.crash(CrashMode::LoseUnsynced, &mut Rng::new(1));
    check(&disk, &jobs).unwrap();
    disk.calls()
}

#[test]
fn answers_hold_when_the_power_goes_off_at_any_call() {
    let calls = calls();
    for call in 1..calls {
        for mode in [CrashMode::LoseUnsynced, CrashMode::Sectors] {
            let disk = SimDisk::new();
            disk.crash_at_call(call);
            let Some(mut client) = Client::open(&disk, Durability::Synced) else { continue };
            client.work();
            let jobs = std::mem::take(&mut client.jobs);
            drop(client);
            disk.crash(mode, &mut Rng::new(call));
            if let Err(what) = check(&disk, &jobs) {
                panic!("power off at call {call}, {mode:?}: {what}");
            }
        }
    }
}

#[test]
fn no_mutation_is_answered_after_a_failure_at_any_call() {
    let calls = calls();
    for call in 1..calls {
        for (kind, forever) in [(FailKind::Io, false), (FailKind::NoSpace, true)] {
            let disk = SimDisk::new();
            disk.fail_call(call, kind, forever);
            let Some(mut client) = Client::open(&disk, Durability::Synced) else { continue };
            client.work();
            let jobs = std::mem::take(&mut client.jobs);
            drop(client);
            disk.crash(CrashMode::LoseUnsynced, &mut Rng::new(call));
            if let Err(what) = check(&disk, &jobs) {
                panic!("{kind:?} at call {call}: {what}");
            }
        }
    }
}

#[test]
fn relaxed_answers_survive_a_kill() {
    for seed in 0..20 {
        let disk = SimDisk::new();
        let durability = Durability::Relaxed { ms: 60_000 };
        let mut client = Client::open(&disk, durability).unwrap();
        client.work();
        let jobs = std::mem::take(&mut client.jobs);
        // Killed: the disk goes dead under the running engine.
        disk.crash(CrashMode::Kill, &mut Rng::new(seed));
        drop(client);
        check(&disk, &jobs).unwrap();
    }
}

/// Puts that never cease must not put off the sync that relaxed promises. On a busy machine the
/// threads may need longer to have their turn.
#[test]
fn relaxed_syncs_also_under_constant_load() {
    let times = [100, 400, 1_600, 6_400].map(Duration::from_millis);
    assert!(times.into_iter().any(is_synced_within), "nothing was synced in seconds");
}

/// Whether a relaxed store under constant load has synced something after this time.
fn is_synced_within(time: Duration) -> bool {
    let disk = SimDisk::new();
    // Default sizes, so that no new segment brings a sync of its own.
    let relaxed = Durability::Relaxed { ms: 1 };
    let mut client = Client::open_sized(&disk, relaxed, Sizes::default()).unwrap();
    let begun = std::time::Instant::now();
    while begun.elapsed() < time {
        let put = Put::new(TopicName::new("busy").unwrap(), "body");
        assert!(matches!(client.ask(Command::Put(vec![put])), Ok(Reply::Put(_))));
    }
    disk.crash(CrashMode::LoseUnsynced, &mut Rng::new(1));
    let mut client = Client::open(&disk, Durability::Synced).unwrap();
    let topics = vec![TopicName::new("busy").unwrap()];
    let reserve = Reserve { topics, max: 10, wait_ms: 0, ttr_ms: None, session: None };
    let Ok(Reply::Jobs(jobs)) = client.ask(Command::Reserve(reserve)) else { panic!() };
    jobs.len() == 10
}

/// A clock that can leap as it does for a process that stood still.
struct Paused(VirtualClock);

impl TimeSource for Paused {
    fn read(&self) -> Reading {
        self.0.read()
    }

    fn boot_id(&self) -> [u8; 16] {
        self.0.boot_id()
    }

    /// Nobody is woken: the process stands still.
    fn on_change(&self, _wake: Arc<dyn Fn() + Send + Sync>) {}
}

/// After a pause an ack that waited is in time, and a delay asked for meanwhile is not early.
#[test]
fn a_pause_spends_no_lease_and_shortens_no_delay() {
    let clock = VirtualClock::new();
    let options = Options { clock: Arc::new(Paused(clock.clone())), ..Options::default() };
    let (sender, answers) = channel();
    let sink = Arc::new(Answers(Mutex::new(sender)));
    let engine = Engine::open_on(Arc::new(SimDisk::new().mount()), options).unwrap();
    let (jobs, tokens) = (BTreeMap::new(), Vec::new());
    let mut client = Client { engine, sink, answers, jobs, tokens, stopped: None };
    let topic = TopicName::new("t").unwrap();
    let reserve = |max| {
        let topics = vec![topic.clone()];
        Command::Reserve(Reserve { topics, max, wait_ms: 0, ttr_ms: None, session: None })
    };
    let mut once = Put::new(topic.clone(), "once");
    once.attempts_max = Some(1);
    assert!(client.ask(Command::Put(vec![once])).is_ok());
    let Ok(Reply::Jobs(jobs)) = client.ask(reserve(1)) else { panic!() };

    clock.advance(Duration::from_secs(3_600));
    let mut later = Put::new(topic.clone(), "later");
    later.delay_ms = Some(1_800_000);
    let (put, ack) = (Command::Put(vec![later]), Command::Ack(vec![jobs[0].token]));
    let requests = [put, ack].map(|command| Request::new(Ticket::next(), command));
    client.engine.submit(requests.into(), client.sink.clone()).unwrap();
    let answers: Vec<Answer> = (0..2).map(|_| client.answers.recv().unwrap()).collect();
    let acked = Ok(Reply::Ended(vec![Ok(EndReply::Done)]));
    assert!(answers.contains(&acked), "the lease ran out while the process stood still");
    let Ok(Reply::Jobs(jobs)) = client.ask(reserve(1)) else { panic!() };
    assert!(jobs.is_empty(), "half an hour counted from before the pause");
}

/// Puts are refused while the disk is nearly full and taken again when it is not.
#[test]
fn full_ends_when_there_is_space_again() {
    let disk = SimDisk::new();
    let clock = VirtualClock::new();
    let options = Options { clock: Arc::new(clock.clone()), ..Options::default() };
    disk.set_free_bytes(1 << 20);
    let (sender, answers) = channel();
    let sink = Arc::new(Answers(Mutex::new(sender)));
    let engine = Engine::open_on(Arc::new(disk.mount()), options).unwrap();
    let (jobs, tokens) = (BTreeMap::new(), Vec::new());
    let mut client = Client { engine, sink, answers, jobs, tokens, stopped: None };
    let put = || Command::Put(vec![Put::new(TopicName::new("t").unwrap(), "body")]);
    let Ok(Reply::Put(refused)) = client.ask(put()) else { panic!() };
    assert_eq!(refused[0].as_ref().unwrap_err().code, Code::Full);
    disk.set_free_bytes(1 << 40);
    clock.advance(Duration::from_secs(2));
    // The first one may come before the look at the disk; that look comes with it at the latest.
    let _ = client.ask(put());
    let Ok(Reply::Put(taken)) = client.ask(put()) else { panic!() };
    assert!(taken[0].is_ok(), "{taken:?}");
}
