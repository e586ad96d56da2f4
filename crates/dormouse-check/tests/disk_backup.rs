//! Backups of a running store: whole, apart from the store they were made of, and never half.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dormouse_check::conformance::client::Client;
use dormouse_check::faults::disk::SimDisk;
use dormouse_check::generate::rng::Rng;
use dormouse_core::backend::{Answer, Backend};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::job::{JobId, Token};
use dormouse_core::meter::MeterValue;
use dormouse_core::op::{Cancel, Put, Reserve, Target};
use dormouse_core::topic::TopicName;
use dormouse_disk::engine::{Engine, Options, Sizes};
use dormouse_disk::verify::verify_dir;

/// So small that a backup comes between flushes and merges.
const SIZES: Sizes = Sizes { memtable_bytes: 20_000, segment_bytes: 30_000, merge_runs: 3 };

fn open(dir: &Path) -> Engine {
    Engine::open(dir, Options { sizes: SIZES, ..Options::default() }).unwrap()
}

fn topic() -> TopicName {
    TopicName::new("t").unwrap()
}

/// The state of a job, by the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    There,
    /// It was asked to end; no answer yet.
    Ending,
    Gone,
}

#[derive(Clone, Default)]
struct Jobs(BTreeMap<JobId, (Fate, Bytes)>);

/// Puts, reserves, acks and cancels, and remembers what was answered.
struct Worker {
    client: Client,
    rng: Rng,
    jobs: Arc<Mutex<Jobs>>,
    tokens: Vec<Token>,
    mine: Vec<JobId>,
}

impl Worker {
    fn new(engine: &Engine, seed: u64, jobs: &Arc<Mutex<Jobs>>) -> Worker {
        let client = Client::new(Arc::new(engine.clone()));
        let (tokens, mine) = (Vec::new(), Vec::new());
        Worker { client, rng: Rng::new(seed), jobs: Arc::clone(jobs), tokens, mine }
    }

    fn set(&self, id: JobId, fate: Fate) {
        self.jobs.lock().unwrap().0.get_mut(&id).unwrap().0 = fate;
    }

    fn put(&mut self) {
        let put = |rng: &mut Rng| {
            let body = Bytes::from(vec![rng.below(256) as u8; rng.below(800) as usize]);
            let delay_ms = Some(if rng.below(2) == 0 { 0 } else { 3_600_000 });
            Put { delay_ms, priority: Some(rng.below(3) as u32), ..Put::new(topic(), body) }
        };
        // Many at once fill a memtable, so that flushes queue up.
        let count = if self.rng.below(3) == 0 { 100 } else { 8 };
        let puts: Vec<Put> = (0..count).map(|_| put(&mut self.rng)).collect();
        let bodies: Vec<Bytes> = puts.iter().map(|put| put.body.clone()).collect();
        let Ok(Reply::Put(replies)) = self.client.ask(Command::Put(puts)) else { panic!("put") };
        let mut jobs = self.jobs.lock().unwrap();
        for (reply, body) in replies.into_iter().zip(bodies) {
            let id = reply.unwrap().id;
            self.mine.push(id);
            // Another worker may have taken it before this one heard of it.
            jobs.0.entry(id).or_insert((Fate::There, body));
        }
    }

    fn reserve(&mut self) {
        let topics = vec![topic()];
        let reserve = Reserve { topics, max: 6, wait_ms: 0, ttr_ms: None, session: None };
        let Ok(Reply::Jobs(jobs)) = self.client.ask(Command::Reserve(reserve)) else {
            panic!("reserve")
        };
        let mut known = self.jobs.lock().unwrap();
        for job in jobs {
            known.0.entry(job.id).or_insert((Fate::There, job.body));
            self.tokens.push(job.token);
        }
    }

    fn ack(&mut self) {
        let tokens: Vec<Token> = self.tokens.drain(..self.tokens.len() / 2).collect();
        if tokens.is_empty() {
            return;
        }
        tokens.iter().for_each(|token| self.set(token.id, Fate::Ending));
        self.client.ask(Command::Ack(tokens.clone())).unwrap();
        tokens.iter().for_each(|token| self.set(token.id, Fate::Gone));
    }

    fn cancel(&mut self) {
        let Some(&id) = self.rng.pick(&self.mine) else { return };
        self.set(id, Fate::Ending);
        let cancel = Cancel { target: Target::Id(id), unless_leased: false };
        self.client.ask(Command::Cancel(vec![cancel])).unwrap();
        self.set(id, Fate::Gone);
    }

    fn step(&mut self) {
        match self.rng.below(8) {
            0..3 => self.put(),
            3..5 => self.reserve(),
            5..7 => self.ack(),
            _ => self.cancel(),
        }
    }
}

/// The bodies of those jobs that a store has.
fn bodies(engine: &Engine, ids: &[JobId]) -> BTreeMap<JobId, Bytes> {
    let client = Client::new(Arc::new(engine.clone()));
    let mut found = BTreeMap::new();
    for chunk in ids.chunks(1_000) {
        let targets = chunk.iter().map(|&id| Target::Id(id)).collect();
        let answer: Answer = client.ask(Command::Get(targets));
        let Ok(Reply::Views(views)) = answer else { panic!("get") };
        let views = views.into_iter().flatten();
        found.extend(views.map(|view| (view.job.id, view.job.content.body)));
    }
    found
}

/// A store made while `before` became `after` has what was there all the time, and nothing that was
/// gone at the beginning.
fn check(engine: &Engine, before: &Jobs, after: &Jobs) {
    let ids: Vec<JobId> = before.0.keys().copied().collect();
    let found = bodies(engine, &ids);
    for (id, (fate, body)) in &before.0 {
        match (*fate, after.0[id].0) {
            (Fate::There, Fate::There) => assert_eq!(found.get(id), Some(body), "job {id}"),
            (Fate::Gone, _) => assert!(!found.contains_key(id), "job {id} is back"),
            _ => {}
        }
    }
}

#[track_caller]
fn assert_sound(dir: &Path) {
    let report = verify_dir(dir).unwrap();
    assert!(report.is_sound() && report.torn.is_none(), "{:?} {:?}", report.damages, report.torn);
}

fn counter(engine: &Engine, name: &str) -> u64 {
    match engine.meters().into_iter().find(|meter| meter.name == name).unwrap().value {
        MeterValue::Counter(value) | MeterValue::Gauge(value) => value,
        other => panic!("{name} is no number: {other:?}"),
    }
}

#[test]
fn a_backup_under_load_has_what_was_answered() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let engine = open(&data);
    let jobs = Arc::new(Mutex::new(Jobs::default()));
    let done = AtomicBool::new(false);
    let mut backups = Vec::new();
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let mut worker = Worker::new(&engine, seed, &jobs);
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    worker.step();
                }
            });
        }
        for round in 0..6 {
            std::thread::sleep(Duration::from_millis(150));
            let before = jobs.lock().unwrap().clone();
            let dir = parent.path().join(format!("backup {round}"));
            let report = engine.backup(&dir).unwrap();
            let after = jobs.lock().unwrap().clone();
            assert_eq!(report.files, fs::read_dir(&dir).unwrap().count() as u64);
            assert_eq!(report.runs_copied, 0, "on one file system runs are linked");
            backups.push((dir, before, after));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(counter(&engine, "merges_total") > 0 && counter(&engine, "flushes_total") > 6);
    for (dir, before, after) in &backups {
        assert!(before.0.len() > 100, "{} jobs", before.0.len());
        assert_sound(dir);
        let restored = open(dir);
        check(&restored, before, after);
        let mut worker = Worker::new(&restored, 9, &Arc::default());
        (0..50).for_each(|_| worker.put());
        restored.close().unwrap();
    }
    let end = jobs.lock().unwrap().clone();
    check(&engine, &end, &end);
    engine.close().unwrap();
    assert_sound(&data);
    check(&open(&data), &end, &end);
}

/// Every file of a directory, byte by byte.
fn content(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    let read = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    files.map(read).collect()
}

/// A store in the directory that has been used, with merges.
fn used(dir: &Path, steps: usize) -> (Engine, Arc<Mutex<Jobs>>) {
    let engine = open(dir);
    let jobs = Arc::default();
    let mut worker = Worker::new(&engine, 5, &jobs);
    (0..steps).for_each(|_| worker.step());
    (engine, jobs)
}

#[test]
fn a_backup_and_its_store_do_not_change_each_other() {
    let parent = tempfile::tempdir().unwrap();
    let (data, copy) = (parent.path().join("data"), parent.path().join("copy"));
    let (engine, jobs) = used(&data, 600);
    let report = engine.backup(&copy).unwrap();
    assert!(report.runs_linked > 0 && report.bytes > 1_000, "{report:?}");
    engine.close().unwrap();
    let untouched = content(&data);
    let (restored, _) = used(&copy, 600);
    restored.close().unwrap();
    assert!(content(&data) == untouched, "the backup wrote into its store");

    // And the other way round.
    let untouched = content(&copy);
    let end = jobs.lock().unwrap().clone();
    let engine = open(&data);
    check(&engine, &end, &end);
    engine.close().unwrap();
    used(&data, 600).0.close().unwrap();
    assert!(content(&copy) == untouched, "the store wrote into its backup");
}

#[test]
fn backups_lie_where_they_are_told_to() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let (engine, jobs) = used(&data, 300);
    let end = jobs.lock().unwrap().clone();
    // Below the data directory, in a directory that is missing, in one that is empty.
    let empty = parent.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let targets = [data.join("backups").join("x"), data.join("backups").join("y"), empty];
    for target in &targets {
        let report = engine.backup(target).unwrap();
        assert_eq!(report.files, fs::read_dir(target).unwrap().count() as u64);
        let jobs = end.0.values().filter(|(fate, _)| *fate == Fate::There).count();
        assert_eq!(report.jobs, jobs as u64);
    }
    engine.close().unwrap();
    assert_sound(&data);
    let engine = open(&data);
    check(&engine, &end, &end);
    engine.close().unwrap();
    for target in &targets {
        assert_sound(target);
        check(&open(target), &end, &end);
    }
}

#[test]
fn what_is_in_the_way_stays() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let (engine, _) = used(&data, 100);
    let refuse = |target: &Path, code: Code, word: &str| {
        let before: Vec<String> = content(parent.path()).into_keys().collect();
        let error = engine.backup(target).unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.text.contains(word), "{error}");
        assert_eq!(content(parent.path()).into_keys().collect::<Vec<_>>(), before);
    };
    let full = parent.path().join("full");
    engine.backup(&full).unwrap();
    let kept = content(&full);
    refuse(&full, Code::Conflict, "not empty");
    refuse(&data, Code::Conflict, "not empty");
    assert!(content(&full) == kept);
    assert!(!parent.path().join("full.part").exists());

    let file = parent.path().join("file");
    fs::write(&file, "mine").unwrap();
    refuse(&file, Code::Invalid, "file");
    refuse(&file.join("below"), Code::Invalid, "below");
    refuse(Path::new("/"), Code::Invalid, "directory");

    let part = parent.path().join("cut.part");
    fs::create_dir(&part).unwrap();
    refuse(&parent.path().join("cut"), Code::Conflict, "cut.part");
    assert!(part.exists(), "who knows whose it is");

    // The store goes on all the same.
    engine.backup(&parent.path().join("good")).unwrap();
    engine.close().unwrap();
    let error = engine.backup(&parent.path().join("late")).unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
    assert!(!parent.path().join("late").exists() && !parent.path().join("late.part").exists());
}

#[test]
fn an_engine_without_a_directory_has_no_backup() {
    let parent = tempfile::tempdir().unwrap();
    let on_disk = Engine::open_on(Arc::new(SimDisk::new().mount()), Options::default()).unwrap();
    for engine in [Engine::memory(Options::default()), on_disk] {
        let error = engine.backup(&parent.path().join("x")).unwrap_err();
        assert_eq!(error.code, Code::Invalid);
        assert!(error.text.contains("no directory"), "{error}");
    }
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn a_backup_on_another_file_system_is_a_copy() {
    let parent = tempfile::tempdir().unwrap();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return };
    if fs::metadata(parent.path()).unwrap().dev() == fs::metadata(other.path()).unwrap().dev() {
        return;
    }
    let (engine, jobs) = used(&parent.path().join("data"), 300);
    let report = engine.backup(&other.path().join("x")).unwrap();
    // Manifest, checkpoint and segment beside them.
    assert_eq!((report.runs_linked, report.runs_copied + 3), (0, report.files));
    assert!(report.runs_copied > 0);
    assert_sound(&other.path().join("x"));
    let end = jobs.lock().unwrap().clone();
    check(&open(&other.path().join("x")), &end, &end);
}
