//! A campaign against the real binary: the child is `dormouse serve`, and the load is here, over
//! HTTP. The history is in the memory of this process, which is not killed.
//!
//! A call whose connection broke has no answer. A batch is no batch over HTTP, so each thread
//! makes one request at a time, some of them with many items.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use dormouse_core::backend::Backend;
use dormouse_core::error::Error;

use crate::checker::event::Event;
use crate::checker::history::{History, Summary};
use crate::client::http::{HttpBackend, PutForm};
use crate::generate::rng::Rng;
use crate::harness::process::campaign::{SIGKILL, TIMEOUT, keep};
use crate::harness::process::client::{Client, Log};
use crate::harness::process::dump::{drain, dump};
use crate::harness::process::load::{Shared, Style, Worker};
use crate::harness::process::recorder::Recorder;

const THREADS: u64 = 8;
/// Every this many rounds, one thread abandons reserves that wait.
const LEAVES_EVERY: u64 = 4;

/// The parameters.
#[derive(Clone, Debug)]
pub struct ServedCampaign {
    /// The binary.
    pub program: PathBuf,
    /// More words after `serve --data DIR --http 127.0.0.1:0`.
    pub args: Vec<String>,
    /// The data directory; made by the first process.
    pub dir: PathBuf,
    /// See [`Campaign::seed`](crate::harness::process::campaign::Campaign::seed).
    pub seed: u64,
    /// How often to kill.
    pub rounds: u64,
}

/// When a process is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    AtWork,
    Starting,
    Started,
}

impl ServedCampaign {
    /// Kills, drains and checks. A failure says what is wrong and where the history is.
    pub fn run(&self) -> Result<Summary, String> {
        let mut rng = Rng::new(self.seed);
        let mut history = History::default();
        let done = (|| {
            for round in 0..self.rounds {
                history.add_round(self.kill_one(round, &mut rng)?);
            }
            // An earlier error says more than a drain that does not end.
            history.check_killed()?;
            history.add_round(self.drain()?);
            history.check()
        })();
        done.map_err(|text| keep(&history, &self.dir, self.seed, &text))
    }

    fn kill_one(&self, round: u64, rng: &mut Rng) -> Result<Vec<Event>, String> {
        let moment = match rng.below(6) {
            _ if round == 0 => Moment::AtWork,
            4 => Moment::Starting,
            5 => Moment::Started,
            _ => Moment::AtWork,
        };
        let log = Log::memory();
        tell(&log, Event::Opening)?;
        let mut process = self.start()?;
        if moment == Moment::Starting {
            thread::sleep(Duration::from_micros(rng.below(40_000)));
            process.kill()?;
            return Ok(log.into_events());
        }
        let backend = process.ready(round)?;
        let ids = self.dump(&backend, &log)?;
        if moment == Moment::AtWork {
            let work = Duration::from_millis(10 + rng.below(900));
            self.load(round, &backend, &log, ids, || {
                thread::sleep(work);
                &mut process
            })?;
        } else {
            process.kill()?;
        }
        Ok(log.into_events())
    }

    /// Works until the process is killed; an error before that is one.
    fn load<'p>(
        &self,
        round: u64,
        backend: &Arc<dyn Backend>,
        log: &Log,
        ids: Vec<u64>,
        until: impl FnOnce() -> &'p mut Process,
    ) -> Result<(), String> {
        let shared = Arc::new(Shared::new(ids));
        let is_killed = AtomicBool::new(false);
        thread::scope(|scope| {
            for thread in 1..=THREADS {
                let (shared, is_killed) = (Arc::clone(&shared), &is_killed);
                let leaves = thread == 1 && round % LEAVES_EVERY == LEAVES_EVERY - 1;
                scope.spawn(move || {
                    let recorder = Recorder::new(backend, log, thread).in_lists();
                    let (unique, style) = (round * 16 + thread, Style::Lists { leaves });
                    let ended = Worker::new(recorder, self.seed, unique, shared, style).run();
                    if let Err(error) = ended
                        && !is_killed.load(Ordering::SeqCst)
                    {
                        // A log in memory takes everything.
                        let _ = log.tell(&[Event::Failed(error.to_string())]);
                    }
                });
            }
            let process = until();
            // The mark comes first: what breaks after it breaks because of the kill.
            is_killed.store(true, Ordering::SeqCst);
            process.kill()
        })
    }

    fn drain(&self) -> Result<Vec<Event>, String> {
        let log = Log::memory();
        let mut process = self.start()?;
        let backend = process.ready(self.rounds)?;
        self.dump(&backend, &log)?;
        let (recorder, client) =
            (Recorder::new(&backend, &log, 0).in_lists(), Client::new(&backend));
        drain(recorder, &client, true).map_err(shown)?;
        self.dump(&backend, &log)?;
        tell(&log, Event::Drained)?;
        process.kill()?;
        Ok(log.into_events())
    }

    /// Tells all jobs there are; gives their ids.
    fn dump(&self, backend: &Arc<dyn Backend>, log: &Log) -> Result<Vec<u64>, String> {
        let found = dump(backend).map_err(shown)?;
        let ids = match &found {
            Event::Dump { jobs, .. } => jobs.iter().map(|job| job.id).collect(),
            _ => Vec::new(),
        };
        tell(log, found)?;
        Ok(ids)
    }

    fn start(&self) -> Result<Process, String> {
        let data = ["--data".to_owned(), self.dir.display().to_string()];
        Process::start(&self.program, data.iter().chain(&self.args))
    }
}

fn shown(error: Error) -> String {
    error.to_string()
}

fn tell(log: &Log, event: Event) -> Result<(), String> {
    log.tell(&[event]).map_err(|error| error.to_string())
}

/// A server; killed if it is left behind.
pub struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    /// `serve` with these words, on a free port.
    pub fn start<'w>(
        program: &Path,
        words: impl IntoIterator<Item = &'w String>,
    ) -> Result<Process, String> {
        let mut command = Command::new(program);
        command.args(["serve", "--http", "127.0.0.1:0", "--resp", "off"]);
        // Its log is for people who look at a failure.
        command.args(["--log", "error"]).args(words).stdin(Stdio::null());
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let (send, lines) = channel();
        let stdout = child.stdout.take();
        thread::spawn(move || {
            for line in stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()) {
                // The receiver may be gone.
                let _ = line.map(|line| send.send(line));
            }
        });
        Ok(Process { child, lines })
    }

    /// Waits until it serves. Puts are written in another form every other round.
    pub fn ready(&mut self, round: u64) -> Result<Arc<dyn Backend>, String> {
        let line = self.lines.recv_timeout(TIMEOUT);
        let line = line.map_err(|_| format!("it does not start: {:?}", self.child.try_wait()))?;
        let addr = line.strip_prefix("http listening on http://");
        let addr: Option<SocketAddr> = addr.and_then(|addr| addr.parse().ok());
        let addr = addr.ok_or_else(|| format!("it does not say where it listens: {line}"))?;
        let form = if round % 2 == 0 { PutForm::Json } else { PutForm::Plain };
        Ok(Arc::new(HttpBackend::new(addr, form, None)))
    }

    /// kill -9. It must not have ended before.
    pub fn kill(&mut self) -> Result<(), String> {
        self.child.kill().map_err(|error| error.to_string())?;
        let status = self.child.wait().map_err(|error| error.to_string())?;
        match status.signal() {
            Some(SIGKILL) => Ok(()),
            _ => Err(format!("the process ended by itself ({status})")),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // If it was killed before, there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
