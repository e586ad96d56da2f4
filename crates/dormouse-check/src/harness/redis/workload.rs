//! A workload: several threads on several backends of one store that outlives them all. Faults are
//! done to the store while they work; in the end every due job is delivered, and the counts are
//! right.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::job::State;
use dormouse_core::op::{List, ListRange, Stats};
use dormouse_core::topic::TopicName;

use crate::checker::event::{Ask, Event, Verb};
use crate::checker::history::{History, Summary};
use crate::harness::process::client::{Client, Log};
use crate::harness::process::dump::{drain, dump};
use crate::harness::process::load::{Shared, Style, TOPICS, Worker};
use crate::harness::process::recorder::Recorder;

/// Threads on each backend.
const THREADS: u64 = 3;
/// After the last fault all that is due comes within this: leases of the load last 1.2 s at most,
/// and one that was extended last of all as long again.
const SETTLED_WITHIN: Duration = Duration::from_secs(6);

/// The backends, and the history so far.
pub struct Workload {
    name: &'static str,
    seed: u64,
    backends: Vec<Arc<dyn Backend>>,
    history: History,
    rounds: u64,
}

impl Workload {
    /// A workload for the store behind all of these.
    pub fn new(name: &'static str, seed: u64, backends: Vec<Arc<dyn Backend>>) -> Workload {
        eprintln!("{name}: DORMOUSE_SEED={seed}");
        Workload { name, seed, backends, history: History::lasting(), rounds: 0 }
    }

    /// The same store behind other servers.
    pub fn replace(&mut self, at: usize, backend: Arc<dyn Backend>) {
        self.backends[at] = backend;
    }

    /// See [`History::shaken`].
    pub fn shaken(&mut self, from_us: u64, to_us: u64) {
        self.history.shaken(from_us, to_us);
    }

    /// Tells all jobs there are, then works while faults are done.
    pub fn round<T>(&mut self, faults: impl FnOnce(&Watch<'_>) -> T) -> Result<T, String> {
        let log = Log::memory();
        let ids = self.take_stock(&log)?;
        let shared = Arc::new(Shared::new(ids));
        let stops: Vec<AtomicBool> = self.backends.iter().map(|_| AtomicBool::default()).collect();
        let (seed, rounds) = (self.seed, self.rounds);
        let done = thread::scope(|scope| {
            // Also if a fault panics: else the scope would wait for ever.
            let _stop = StopAll(&stops);
            for (at, backend) in self.backends.iter().enumerate() {
                for thread in 0..THREADS {
                    let (shared, stop, log) = (Arc::clone(&shared), &stops[at], &log);
                    let number = at as u64 * THREADS + thread + 1;
                    let unique = rounds * 32 + number;
                    scope.spawn(move || {
                        let recorder = Recorder::new(backend, log, number).in_lists().patient();
                        let style = Style::Lists { leaves: false };
                        let mut worker = Worker::new(recorder, seed, unique, shared, style);
                        if let Err(error) = worker.run_until(stop) {
                            // A log in memory takes everything.
                            let _ = log.tell(&[Event::Failed(error.to_string())]);
                        }
                    });
                }
            }
            faults(&Watch { stops: &stops })
        });
        self.end_round(log);
        Ok(done)
    }

    /// Without faults: all that is due comes, and the drain accounts for every job.
    pub fn finish(mut self) -> Result<Summary, String> {
        self.check().map_err(|text| self.keep(&text))
    }

    fn check(&mut self) -> Result<Summary, String> {
        // An earlier error says more than a drain that does not end.
        self.history.check_killed()?;
        let settled = self.settle()?;
        self.drain()?;
        let summary = self.history.check()?;
        eprintln!("{}: settled in {settled:?}, {summary:?}", self.name);
        Ok(summary)
    }

    /// Takes and acks until nothing is ready or leased.
    fn settle(&mut self) -> Result<Duration, String> {
        let (log, began_at) = (Log::memory(), Instant::now());
        let recorder = |(backend, number)| Recorder::new(backend, &log, number).in_lists();
        let mut recorders: Vec<Recorder<'_>> =
            self.backends.iter().zip(1..).map(recorder).collect();
        let ack = |token| Ask::Token { verb: Verb::Ack, token, forged: false, delay_ms: None };
        loop {
            let mut acks = 0;
            for recorder in &mut recorders {
                let taken = recorder.reserve(100, 100).map_err(shown)?;
                let asks: Vec<Ask> = taken.iter().map(|job| ack((job.id, job.fence))).collect();
                acks += asks.len();
                if !asks.is_empty() {
                    recorder.call(asks).map_err(shown)?;
                }
            }
            let backend = self.backends.first().ok_or("nobody to ask")?;
            if acks == 0 && is_settled(backend).map_err(shown)? {
                break;
            }
            if began_at.elapsed() > SETTLED_WITHIN {
                return Err(format!("P12: jobs are still due after {SETTLED_WITHIN:?}"));
            }
        }
        drop(recorders);
        self.end_round(log);
        Ok(began_at.elapsed())
    }

    fn drain(&mut self) -> Result<(), String> {
        let log = Log::memory();
        self.take_stock(&log)?;
        let backend = self.backends.first().ok_or("nobody to ask")?;
        let (recorder, client) = (Recorder::new(backend, &log, 0).in_lists(), Client::new(backend));
        drain(recorder, &client, true).map_err(shown)?;
        self.take_stock(&log)?;
        log.tell(&[Event::Drained]).map_err(|error| error.to_string())?;
        self.end_round(log);
        Ok(())
    }

    /// Tells all jobs; gives their ids.
    fn take_stock(&self, log: &Log) -> Result<Vec<u64>, String> {
        for backend in &self.backends {
            // It is queued behind all that is still under way there.
            let all = Command::Stats(Stats { topic: None });
            Client::new(backend).call_one(all).map_err(shown)?;
        }
        let backend = self.backends.first().ok_or("nobody to ask")?;
        let found = dump(backend).map_err(shown)?;
        let ids = match &found {
            Event::Dump { jobs, .. } => jobs.iter().map(|job| job.id).collect(),
            _ => Vec::new(),
        };
        log.tell(&[found]).map_err(|error| error.to_string())?;
        Ok(ids)
    }

    fn end_round(&mut self, log: Log) {
        self.history.add_round(log.into_events());
        self.rounds += 1;
    }

    /// Keeps the history of a campaign that went wrong.
    fn keep(&self, text: &str) -> String {
        let name = format!("{}-{}.history.jsonl", self.name, self.seed);
        let path: PathBuf = std::env::temp_dir().join(name);
        let kept = match self.history.write(&path) {
            Ok(()) => format!("history: {}", path.display()),
            Err(error) => format!("the history could not be kept: {error}"),
        };
        format!("{text}\n{kept}\nDORMOUSE_SEED={} repeats the calls", self.seed)
    }
}

/// Lets the code that injects faults stop threads before.
pub struct Watch<'w> {
    stops: &'w [AtomicBool],
}

impl Watch<'_> {
    /// The threads on this backend stop after the call that is under way.
    pub fn leave(&self, at: usize) {
        self.stops[at].store(true, Ordering::SeqCst);
    }
}

struct StopAll<'s>(&'s [AtomicBool]);

impl Drop for StopAll<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|stop| stop.store(true, Ordering::SeqCst));
    }
}

/// Nothing is ready or leased.
fn is_settled(backend: &Arc<dyn Backend>) -> Result<bool, Error> {
    let client = Client::new(backend);
    for topic in TOPICS {
        for state in [State::Leased, State::Ready] {
            let topic = TopicName::new(topic)?;
            let list = List { topic, state, cursor: None, limit: 1, range: ListRange::default() };
            match client.call_one(Command::List(list))? {
                Reply::Page(page) if page.jobs.is_empty() => {}
                _ => return Ok(false),
            }
        }
    }
    Ok(true)
}

fn shown(error: Error) -> String {
    error.to_string()
}
