//! kill -9 while jobs come to their end in every way: chains, deadlines, dead letters, history;
//! and while a schedule ticks.
//!
//! A child appends what it asks and what it is told to a file, which outlives it. The last child
//! is not killed: it lists everything there is, and the account is made up.

mod account;
pub(super) mod child;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use account::Account;

use crate::generate::rng::Rng;
use crate::harness::process::campaign::SIGKILL;
use crate::harness::process::child::{Task, Then};

/// One line of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Line {
    /// A call is about to be made.
    Asked { call: u64, at_us: u64, ask: Ask },
    /// It was answered.
    Told { call: u64, at_us: u64, told: Told },
    /// All jobs there are, at the end.
    Found { at_us: u64, jobs: Vec<Found> },
    /// The schedule at the end.
    Ticked { anchor_ms: u64, next_ms: u64, given: u64, total: u64 },
    /// Something that must not be.
    Failed(String),
}

/// A call about jobs; each job has a number of its own, by its body.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    Put(Planned),
    Reserve,
    /// Ack this job, put those.
    Chain {
        number: u64,
        puts: Vec<Planned>,
    },
    Nack {
        number: u64,
    },
    Kill {
        number: u64,
    },
}

/// A job that is put.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Planned {
    number: u64,
    delay_ms: u64,
    /// 0 = it does not expire.
    expires_after_ms: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Told {
    /// The put, or the chain with all its puts, was done.
    Done,
    /// Number and attempt of each.
    Jobs(Vec<(u64, u32)>),
    /// The job of the token was not there any more.
    Gone,
    /// Refused with this code.
    Refused(String),
}

/// A job as it was found at the end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Found {
    /// `None` = its body is no job's.
    number: Option<u64>,
    id: u64,
    topic: String,
    state: String,
    /// It is the dead letter of this job.
    origin: Option<u64>,
    /// Its tick, if it is of the schedule.
    tick_ms: Option<u64>,
}

/// The parameters, as of [`Campaign`](crate::harness::process::campaign::Campaign).
#[derive(Clone, Debug)]
pub struct EndsCampaign {
    /// The child's program.
    pub program: PathBuf,
    /// The data directory; made by the first child.
    pub dir: PathBuf,
    /// Of the load and of the times to kill.
    pub seed: u64,
    /// How often to kill.
    pub rounds: u64,
}

impl EndsCampaign {
    /// Kills, lists and checks. A failure says what is wrong and where the file is.
    pub fn run(&self) -> Result<Account, String> {
        let path = lines_path(&self.dir);
        let done = self.kill_all().and_then(|()| account::check(&path));
        done.map_err(|text| format!("{text}\nlines: {}, seed {}", path.display(), self.seed))
    }

    fn kill_all(&self) -> Result<(), String> {
        let mut rng = Rng::new(self.seed);
        for round in 0..self.rounds {
            let mut child = self.start(round, Then::End)?;
            // Some are killed while they open the store.
            let ms = if rng.chance(20) { rng.below(40) } else { 100 + rng.below(700) };
            thread::sleep(Duration::from_millis(ms));
            child.kill().map_err(|error| error.to_string())?;
            let status = child.wait().map_err(|error| error.to_string())?;
            if status.signal() != Some(SIGKILL) {
                return Err(format!("round {round}: the process ended by itself ({status})"));
            }
        }
        let mut last = self.start(self.rounds, Then::ListEnds)?;
        // `wait` would close it.
        let _stdin = last.stdin.take();
        match last.wait() {
            Ok(status) if status.success() => Ok(()),
            other => Err(format!("the last process ended badly: {other:?}")),
        }
    }

    fn start(&self, round: u64, then: Then) -> Result<Child, String> {
        let task = Task { dir: self.dir.clone(), seed: self.seed, round, then };
        let task = serde_json::to_string(&task).map_err(|error| error.to_string())?;
        let mut command = Command::new(&self.program);
        // The pipe is closed with this process, and then the child ends.
        command.arg(task).stdin(Stdio::piped()).stdout(Stdio::null());
        command.spawn().map_err(|error| format!("{}: {error}", self.program.display()))
    }
}

/// The file of a campaign.
pub fn lines_path(dir: &Path) -> PathBuf {
    dir.with_extension("ends.jsonl")
}
