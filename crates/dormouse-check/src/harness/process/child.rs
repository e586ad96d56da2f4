//! The child process: opens the store, tells what is in it, works until it is killed.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use dormouse_core::backend::Backend;
use dormouse_core::error::Error;
use dormouse_disk::clock::{Reading, SystemClock, TimeSource};
use dormouse_disk::engine::{Engine, Options};
use dormouse_disk::store::Sizes;
use serde::{Deserialize, Serialize};

use crate::checker::event::Event;
use crate::harness::process::client::{Client, Log};
use crate::harness::process::dump::{drain, dump};
use crate::harness::process::ends;
use crate::harness::process::load::{Shared, Style, Worker};
use crate::harness::process::recorder::Recorder;

/// Flushes and merges all the time.
const SIZES: Sizes = Sizes { memtable_bytes: 48 << 10, segment_bytes: 96 << 10, merge_runs: 3 };
const THREADS: u64 = 4;
/// The drain's clock is ahead of all due times.
const AHEAD_MS: u64 = 2 * 3_600 * 1_000;

/// The task of a child.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The data directory.
    pub dir: PathBuf,
    /// Of the load.
    pub seed: u64,
    /// Counts the processes of a campaign.
    pub round: u64,
    /// After the dump.
    pub then: Then,
}

/// The work of a child once it has recorded the content of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Then {
    /// Works until it is killed.
    Load,
    /// Waits to be killed.
    Wait,
    /// Takes and acks everything and closes the store.
    Drain,
    /// Lets jobs end in every way until it is killed; see `ends`.
    End,
    /// Lists all that came of that.
    ListEnds,
}

/// Runs a task; the exit code.
pub fn run(task: &Task) -> i32 {
    // A child whose parent is gone ends.
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(3);
    });
    let Ok(log) = Log::pipe() else { return 4 };
    match work(task, &log) {
        Ok(()) => 0,
        Err(text) => {
            let _ = log.tell(&[Event::Failed(text)]);
            1
        }
    }
}

fn work(task: &Task, log: &Log) -> Result<(), String> {
    let shown = |error: Error| error.to_string();
    let tell = |event: Event| log.tell(&[event]).map_err(|error| error.to_string());
    tell(Event::Opening)?;
    let clock: Arc<dyn TimeSource> = match task.then {
        Then::Drain => Arc::new(Ahead),
        _ => Arc::new(SystemClock),
    };
    let options = Options { clock, sizes: SIZES, ..Options::default() };
    let engine = Engine::open(&task.dir, options).map_err(|error| error.to_string())?;
    match task.then {
        Then::End => return ends::child::load(task, &engine),
        Then::ListEnds => return ends::child::list_all(task, &engine),
        Then::Load | Then::Wait | Then::Drain => {}
    }
    let backend: Arc<dyn Backend> = Arc::new(engine.clone());
    let found = dump(&backend).map_err(shown)?;
    let ids = match &found {
        Event::Dump { jobs, .. } => jobs.iter().map(|job| job.id).collect(),
        _ => Vec::new(),
    };
    tell(found)?;
    match task.then {
        Then::Load => load(task, &backend, log, ids),
        Then::Wait => loop {
            thread::park();
        },
        Then::End | Then::ListEnds => Ok(()),
        Then::Drain => {
            let (recorder, client) = (Recorder::new(&backend, log, 0), Client::new(&backend));
            drain(recorder, &client, false).map_err(shown)?;
            tell(dump(&backend).map_err(shown)?)?;
            tell(Event::Drained)?;
            engine.close().map_err(shown)
        }
    }
}

fn load(task: &Task, backend: &Arc<dyn Backend>, log: &Log, ids: Vec<u64>) -> Result<(), String> {
    let shared = Arc::new(Shared::new(ids));
    thread::scope(|scope| {
        let workers: Vec<_> = (1..=THREADS)
            .map(|thread| {
                let shared = Arc::clone(&shared);
                let unique = task.round * 16 + thread;
                scope.spawn(move || {
                    let recorder = Recorder::new(backend, log, thread);
                    let style = Style::Batches;
                    let ended = Worker::new(recorder, task.seed, unique, shared, style).run();
                    if let Err(error) = ended {
                        // The other threads would wait for ever.
                        let _ = log.tell(&[Event::Failed(error.to_string())]);
                        std::process::exit(1);
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| drop(worker.join()));
    });
    Err("the load ended".to_owned())
}

/// The computer's clock, ahead.
struct Ahead;

impl TimeSource for Ahead {
    fn read(&self) -> Reading {
        let real = SystemClock.read();
        let (boottime_ms, wall_ms) = (real.boottime_ms + AHEAD_MS, real.wall_ms + AHEAD_MS);
        Reading { boottime_ms, wall_ms, ..real }
    }

    fn boot_id(&self) -> [u8; 16] {
        SystemClock.boot_id()
    }

    fn on_change(&self, _wake: Arc<dyn Fn() + Send + Sync>) {}
}
