//! Turns on callers' threads: nobody is forgotten, nothing overtakes, and long work stays away.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::event::{Event, EventKind, Watcher};
use dormouse_core::job::JobId;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Kick, Put, Reserve};
use dormouse_core::topic::TopicName;
use dormouse_disk::disk::{Disk, File, RealDisk};
use dormouse_disk::engine::{Durability, Engine, Options, Sizes};

/// Long enough for any machine; a test that waits so long has failed.
const TIMEOUT: Duration = Duration::from_secs(30);
const RELAXED: Durability = Durability::Relaxed { ms: 20 };
/// A few hundred jobs fill a memtable.
const SMALL: Sizes = Sizes { memtable_bytes: 64 << 10, segment_bytes: 128 << 10, merge_runs: 4 };

/// In memory, and on disk in both durabilities.
fn engines(test: impl Fn(&Engine)) {
    test(&Engine::memory(Options::default()));
    for durability in [Durability::Synced, RELAXED] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { durability, sizes: SMALL, ..Options::default() };
        test(&Engine::open(dir.path(), options).unwrap());
    }
}

fn call(engine: &Engine, command: Command) -> Answer {
    let (sink, answers): (Sender<(Ticket, Answer)>, Receiver<_>) = channel();
    engine.submit(vec![request(command)], Arc::new(sink)).unwrap();
    answers.recv_timeout(TIMEOUT).expect("every request is answered").1
}

fn topic(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

fn request(command: Command) -> Request {
    Request::new(Ticket::next(), command)
}

fn put(topic: &TopicName) -> Command {
    Command::Put(vec![Put::new(topic.clone(), vec![b'x'; 50])])
}

fn ids(answer: Answer) -> Vec<JobId> {
    let Ok(Reply::Put(puts)) = answer else { panic!("no put: {answer:?}") };
    puts.into_iter().map(|put| put.unwrap().id).collect()
}

fn reserve(engine: &Engine, topic: &TopicName, wait_ms: i64) -> Vec<JobId> {
    let topics = vec![topic.clone()];
    let reserve = Reserve { topics, max: 10, wait_ms, ttr_ms: None, session: None };
    let Ok(Reply::Jobs(jobs)) = call(engine, Command::Reserve(reserve)) else { panic!("no jobs") };
    let tokens: Vec<_> = jobs.iter().map(|job| job.token).collect();
    if !tokens.is_empty() {
        assert!(call(engine, Command::Ack(tokens)).is_ok());
    }
    jobs.into_iter().map(|job| job.id).collect()
}

/// A thread that finds the state taken leaves its request to the holder: if that one did not look
/// again, somebody would wait here for ever.
#[test]
fn everybody_is_answered_however_many_come_at_once() {
    engines(|engine| {
        let shared = topic("shared");
        thread::scope(|scope| {
            for number in 0..8 {
                let (engine, shared) = (engine.clone(), shared.clone());
                scope.spawn(move || {
                    let own = topic(&format!("own-{number}"));
                    for round in 0..150 {
                        // The holder of a job that was answered finds it, at once.
                        let put_ids = ids(call(&engine, put(&own)));
                        assert_eq!(reserve(&engine, &own, 0), put_ids, "round {round}");
                        if round % 10 == number {
                            // Long: only the engine thread does it.
                            let many = vec![Put::new(shared.clone(), "x"); 100];
                            assert_eq!(ids(call(&engine, Command::Put(many))).len(), 100);
                        }
                    }
                });
            }
            let (engine, shared) = (engine.clone(), shared.clone());
            scope.spawn(move || {
                let mut taken = BTreeSet::new();
                while taken.len() < 8 * 15 * 100 {
                    let ids = reserve(&engine, &shared, 10_000);
                    assert!(!ids.is_empty(), "waited 10 s, {} taken", taken.len());
                    ids.into_iter().for_each(|id| assert!(taken.insert(id), "{id} twice"));
                }
            });
        });
    });
}

/// The engine thread looks into the inbox each second, so a request that a holder overlooked is not
/// lost, only late. Relaxed, no call waits for the disk, so hardly one takes that long.
#[test]
fn nobody_waits_for_the_next_look_of_the_engine_thread() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { durability: RELAXED, ..Options::default() };
    let engine = Engine::open(dir.path(), options).unwrap();
    let slow_calls = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..8 {
            let (engine, slow_calls) = (&engine, &slow_calls);
            scope.spawn(move || {
                let own = topic(&format!("own-{number}"));
                for _ in 0..300 {
                    // Many jobs, so that the others come during this one's turn.
                    let many = vec![Put::new(own.clone(), "x"); 50];
                    let called_at = Instant::now();
                    ids(call(engine, Command::Put(many)));
                    if called_at.elapsed() > Duration::from_millis(400) {
                        slow_calls.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let slow_calls = slow_calls.into_inner();
    assert!(slow_calls < 8, "{slow_calls} of 2,400 calls took more than 400 ms");
}

/// Notes the jobs whose put it was told of.
#[derive(Default)]
struct Told(Mutex<Vec<JobId>>);

impl Watcher for Told {
    fn observe(&self, events: &mut Vec<Event>) {
        let puts = events.drain(..).filter(|event| event.kind == EventKind::Put);
        self.0.lock().unwrap().extend(puts.filter_map(|event| event.id));
    }
}

/// Notes the puts that were answered before the watcher was told.
struct Strict {
    told: Arc<Told>,
    untold: Arc<Mutex<Vec<JobId>>>,
    answered: Sender<()>,
}

impl Sink for Strict {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        for (_, answer) in answers.drain(..) {
            let told = self.told.0.lock().unwrap();
            let missing = ids(answer).into_iter().filter(|id| !told.contains(id));
            self.untold.lock().unwrap().extend(missing);
            self.answered.send(()).unwrap();
        }
    }
}

#[test]
fn events_come_in_order_and_before_their_answers() {
    engines(|engine| {
        let told = Arc::new(Told::default());
        engine.watch(Some(told.clone()));
        let untold = Arc::new(Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for number in 0..4 {
                let (answered, answers) = channel();
                let sink = Strict { told: told.clone(), untold: Arc::clone(&untold), answered };
                let sink: Arc<dyn Sink> = Arc::new(sink);
                let own = topic(&format!("own-{number}"));
                scope.spawn(move || {
                    for _ in 0..200 {
                        engine.submit(vec![request(put(&own))], Arc::clone(&sink)).unwrap();
                    }
                    for _ in 0..200 {
                        answers.recv_timeout(TIMEOUT).expect("every request is answered");
                    }
                });
            }
        });
        assert_eq!(*untold.lock().unwrap(), [], "answered before the watcher was told");
        let told = told.0.lock().unwrap();
        assert_eq!(told.len(), 800);
        // Ids are given in the order of the turns.
        assert!(told.is_sorted(), "events overtook each other");
    });
}

/// Submits the next put with every answer.
struct Chain {
    engine: Engine,
    left: AtomicUsize,
    done: Sender<()>,
}

impl Chain {
    fn go(self: &Arc<Chain>) {
        let sink = Link(Arc::clone(self));
        self.engine.submit(vec![request(put(&topic("chain")))], Arc::new(sink)).unwrap();
    }
}

struct Link(Arc<Chain>);

impl Sink for Link {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        answers.clear();
        if self.0.left.fetch_sub(1, Ordering::Relaxed) > 1 {
            self.0.go();
        } else {
            self.0.done.send(()).unwrap();
        }
    }
}

#[test]
fn a_sink_may_submit() {
    engines(|engine| {
        let (done, ended) = channel();
        let chain = Chain { engine: engine.clone(), left: AtomicUsize::new(2_000), done };
        Arc::new(chain).go();
        ended.recv_timeout(TIMEOUT).expect("the chain goes on");
    });
}

/// Closes the engine with the first answer, on whichever thread brings it.
struct Closes {
    engine: Engine,
    returned: Sender<()>,
}

impl Sink for Closes {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        answers.clear();
        self.engine.close().unwrap();
        self.returned.send(()).unwrap();
    }
}

/// The end waits for those who deliver, so they must not wait for the end.
#[test]
fn a_sink_may_close_on_a_callers_thread() {
    engines(|engine| {
        let (returned, heard) = channel();
        let sink = Arc::new(Closes { engine: engine.clone(), returned });
        let caller = engine.clone();
        // If it waited, it would do so for ever: not on the thread of the test.
        thread::spawn(move || caller.submit(vec![request(put(&topic("t")))], sink));
        heard.recv_timeout(TIMEOUT).expect("close returns");
        assert!(engine.wait_stopped().is_ok());
    });
}

struct Panics;

impl Sink for Panics {
    fn deliver(&self, _: &mut Vec<(Ticket, Answer)>) {
        panic!("a sink panics (expected)");
    }
}

/// The panic of one caller's sink stops the store and unwinds through nobody's `submit`.
#[test]
fn a_panic_reaches_no_caller() {
    engines(|engine| {
        thread::scope(|scope| {
            for number in 0..4 {
                scope.spawn(move || {
                    let own = topic(&format!("own-{number}"));
                    for round in 0.. {
                        let sink: Arc<dyn Sink> = if number == 0 && round == 50 {
                            Arc::new(Panics)
                        } else {
                            Arc::new(dormouse_core::backend::Discard)
                        };
                        if let Err(error) = engine.submit(vec![request(put(&own))], sink) {
                            match error.code {
                                Code::Busy => thread::yield_now(),
                                code => return assert_eq!(code, Code::Unavailable),
                            }
                        }
                    }
                });
            }
        });
        assert!(engine.wait_stopped().is_err());
    });
}

/// A disk that notes which threads wait for it.
struct Witness {
    inner: RealDisk,
    callers: Arc<Mutex<BTreeSet<String>>>,
}

struct WitnessFile {
    inner: Arc<dyn File>,
    callers: Arc<Mutex<BTreeSet<String>>>,
}

fn note(callers: &Mutex<BTreeSet<String>>) {
    let name = thread::current().name().unwrap_or("?").to_owned();
    callers.lock().unwrap().insert(name);
}

impl Witness {
    fn file(&self, inner: io::Result<Arc<dyn File>>) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(WitnessFile { inner: inner?, callers: Arc::clone(&self.callers) }))
    }
}

impl Disk for Witness {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        note(&self.callers);
        self.file(self.inner.create(name))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.file(self.inner.open(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        note(&self.callers);
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        note(&self.callers);
        self.inner.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn sync_dir(&self) -> io::Result<()> {
        note(&self.callers);
        self.inner.sync_dir()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        note(&self.callers);
        self.inner.free_bytes()
    }
}

impl File for WitnessFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner.write_at(offset, data)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, into)
    }

    fn sync(&self) -> io::Result<()> {
        note(&self.callers);
        self.inner.sync()
    }

    fn forget_cached(&self) -> io::Result<()> {
        self.inner.forget_cached()
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
}

fn witness(dir: &Path) -> (Arc<Witness>, Arc<Mutex<BTreeSet<String>>>) {
    let callers = Arc::new(Mutex::new(BTreeSet::new()));
    let inner = RealDisk::open(dir).unwrap();
    (Arc::new(Witness { inner, callers: Arc::clone(&callers) }), callers)
}

/// Segments, checkpoints, removals and syncs take as long as the disk likes.
#[test]
fn a_caller_never_waits_for_the_disk() {
    for durability in [Durability::Synced, RELAXED] {
        let dir = tempfile::tempdir().unwrap();
        let (disk, callers) = witness(dir.path());
        let options = Options { durability, sizes: SMALL, ..Options::default() };
        let engine = Engine::open_on(disk, options).unwrap();
        // The opening thread made and synced the first files.
        callers.lock().unwrap().clear();
        let own = topic("own");
        for _ in 0..3_000 {
            ids(call(&engine, put(&own)));
        }
        engine.close().unwrap();
        let callers = callers.lock().unwrap().clone();
        assert!(callers.contains("dormouse-flush"), "memtables were flushed: {callers:?}");
        let own_threads = callers.iter().all(|name| name.starts_with("dormouse-"));
        assert!(own_threads, "{durability:?}: {callers:?}");
    }
}

/// A close finishes what was taken, also a command that is done in portions.
#[test]
fn a_close_finishes_a_long_command() {
    engines(|engine| {
        let own = topic("own");
        let put = Put { delay_ms: Some(3_600_000), ..Put::new(own.clone(), "x") };
        assert!(call(engine, Command::Put(vec![put; BATCH_MAX])).is_ok());
        let (sink, answers): (Sender<(Ticket, Answer)>, Receiver<_>) = channel();
        let kick = Command::Kick(Kick { topic: own, max: BATCH_MAX });
        engine.submit(vec![request(kick)], Arc::new(sink)).unwrap();
        engine.close().unwrap();
        let (_, answer) = answers.recv_timeout(TIMEOUT).unwrap();
        assert_eq!(answer, Ok(Reply::Count(BATCH_MAX as u64)));
    });
}
