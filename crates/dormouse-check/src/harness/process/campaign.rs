//! A campaign: one directory, many processes, each killed; then a drain, then the check.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::checker::event::Event;
use crate::checker::history::{History, Summary};
use crate::generate::rng::Rng;
use crate::harness::process::child::{Task, Then};

pub(crate) const SIGKILL: i32 = 9;
/// No store of this size takes longer to open or to drain.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// The parameters.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The child's program.
    pub program: PathBuf,
    /// The data directory; made by the first child.
    pub dir: PathBuf,
    /// Of the load and of the times to kill. Threads and disk have their own will, so the same
    /// seed gives the same calls, not the same instant of death.
    pub seed: u64,
    /// How often to kill.
    pub rounds: u64,
}

impl Campaign {
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

    /// Starts a process and kills it: at work, or while it opens the store, or just after.
    fn kill_one(&self, round: u64, rng: &mut Rng) -> Result<Vec<Event>, String> {
        let kind = if round == 0 { 0 } else { rng.below(6) };
        let then = if kind == 5 { Then::Wait } else { Then::Load };
        let process = Process::start(&self.program, &self.task(round, then))?;
        if kind == 4 {
            thread::sleep(Duration::from_micros(rng.below(40_000)));
        } else {
            process.wait_for_dump()?;
            if then == Then::Load {
                thread::sleep(Duration::from_millis(10 + rng.below(900)));
            }
        }
        process.kill()
    }

    fn drain(&self) -> Result<Vec<Event>, String> {
        Process::start(&self.program, &self.task(self.rounds, Then::Drain))?.finish()
    }

    fn task(&self, round: u64, then: Then) -> Task {
        Task { dir: self.dir.clone(), seed: self.seed, round, then }
    }
}

/// Keeps the history of a campaign that went wrong; what to tell about it.
pub(crate) fn keep(history: &History, dir: &Path, seed: u64, text: &str) -> String {
    let path = dir.with_extension("history.jsonl");
    let kept = history.write(&path).map_or_else(
        |error| format!("the history could not be kept: {error}"),
        |()| format!("history: {}, directory: {}", path.display(), dir.display()),
    );
    format!("{text}\n{kept}\nDORMOUSE_SEED={seed} repeats the calls")
}

/// A child and what it tells.
struct Process {
    child: Child,
    /// Closed with the parent, and then the child ends.
    _stdin: Option<ChildStdin>,
    reader: JoinHandle<Result<Vec<Event>, String>>,
    dumped: Receiver<()>,
}

impl Process {
    fn start(program: &Path, task: &Task) -> Result<Process, String> {
        let task = serde_json::to_string(task).map_err(|error| error.to_string())?;
        let mut child = Command::new(program)
            .arg(task)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let (tell, dumped) = channel();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let reader = thread::spawn(move || match stdout {
            Some(stdout) => read(BufReader::new(stdout), &tell),
            None => Ok(Vec::new()),
        });
        Ok(Process { child, _stdin: stdin, reader, dumped })
    }

    fn wait_for_dump(&self) -> Result<(), String> {
        match self.dumped.recv_timeout(TIMEOUT) {
            Err(RecvTimeoutError::Timeout) => Err("the store did not open in time".to_owned()),
            // Ended: its last events say why.
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    /// kill -9; returns the events before it.
    fn kill(mut self) -> Result<Vec<Event>, String> {
        self.child.kill().map_err(|error| error.to_string())?;
        let status = self.child.wait().map_err(|error| error.to_string())?;
        let events = self.told()?;
        if status.signal() == Some(SIGKILL) {
            Ok(events)
        } else {
            Err(format!("the process ended by itself ({status}): {:?}", events.last()))
        }
    }

    /// Waits for its end, which must be a good one.
    fn finish(mut self) -> Result<Vec<Event>, String> {
        let status = self.child.wait().map_err(|error| error.to_string())?;
        let events = self.told()?;
        if status.success() && events.last() == Some(&Event::Drained) {
            Ok(events)
        } else {
            Err(format!("the drain ended badly ({status}): {:?}", events.last()))
        }
    }

    fn told(self) -> Result<Vec<Event>, String> {
        self.reader.join().unwrap_or_else(|_| Err("the reader panicked".to_owned()))
    }
}

/// Reads lines to the end. The last one may be cut short by the kill: then it is dropped.
fn read(mut lines: impl BufRead, dumped: &Sender<()>) -> Result<Vec<Event>, String> {
    let mut events = Vec::new();
    let mut line = String::new();
    loop {
        line.clear();
        lines.read_line(&mut line).map_err(|error| error.to_string())?;
        if !line.ends_with('\n') {
            return Ok(events);
        }
        let event: Event = serde_json::from_str(&line).map_err(|error| {
            format!("the process told something that is no event ({error}): {line}")
        })?;
        if matches!(event, Event::Dump { .. }) {
            // The parent may have stopped to wait.
            let _ = dumped.send(());
        }
        events.push(event);
    }
}
