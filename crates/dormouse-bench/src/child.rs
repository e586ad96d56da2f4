//! Phases in processes of their own: this program started again, with a task.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::plan::{Phase, Plan};
use crate::{Result, cancel, drain, fill, herd, idle, keyed, late, late_busy, leftovers, reopen};

/// The arguments of a phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) phase: Phase,
    pub(crate) plan: Plan,
    /// The engine's directory.
    pub(crate) data: PathBuf,
    /// A directory next to it, for files of the bench itself.
    pub(crate) scratch: PathBuf,
    /// The id of the backlog's first job.
    pub(crate) first_id: u64,
    /// Jobs of the backlog that are cancelled: the first ones of the shuffled order.
    pub(crate) cancelled: u64,
}

/// The child's side: does a task.
pub(crate) fn run(task: &str) -> Result<()> {
    let task: Task = serde_json::from_str(task)?;
    match task.phase {
        Phase::Fill => fill::run(&task),
        Phase::Reopen => reopen::run(&task),
        Phase::Idle => idle::run(&task),
        Phase::Keyed => keyed::run(&task),
        Phase::Cancel => cancel::run(&task),
        Phase::Late => late::run(&task),
        Phase::LateBeside => late_busy::beside(&task),
        Phase::LateAfter => late_busy::after(&task),
        Phase::Herd => herd::run(&task),
        Phase::Drain => drain::run(&task),
        Phase::Cancelled => leftovers::cancel_all(&task),
        Phase::Leftovers => leftovers::start(&task),
        Phase::Raw => Err("raw is measured by the parent".into()),
    }
}

/// The child's side: gives figures to the parent.
pub(crate) fn report(figures: &impl Serialize) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{}", serde_json::to_string(figures)?)?;
    Ok(stdout.flush()?)
}

/// The child's side: stays until the parent kills this process. If the parent is gone, there is
/// nothing to wait for.
pub(crate) fn wait_for_kill() {
    let _ = std::io::stdin().read(&mut [0]);
}

/// The parent's side of a phase under way.
pub(crate) struct Running {
    phase: Phase,
    process: Child,
    /// Closed when the parent ends, however it ends: then the child ends too.
    _stdin: Option<ChildStdin>,
}

/// Starts a phase and waits for its figures.
pub(crate) fn start<F: DeserializeOwned>(task: &Task) -> Result<(F, Running)> {
    let mut process = Command::new(std::env::current_exe()?)
        .arg("phase")
        .arg(serde_json::to_string(task)?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdin = process.stdin.take();
    let stdout = process.stdout.take();
    let mut running = Running { phase: task.phase, process, _stdin: stdin };
    let mut line = String::new();
    if let Some(stdout) = stdout {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    if line.is_empty() {
        let status = running.process.wait()?;
        return Err(format!("{:?} failed ({status}), see above", task.phase).into());
    }
    Ok((serde_json::from_str(&line)?, running))
}

/// Runs a phase to its end.
pub(crate) fn finish<F: DeserializeOwned>(task: &Task) -> Result<F> {
    let (figures, mut running) = start(task)?;
    let status = running.process.wait()?;
    if status.success() {
        Ok(figures)
    } else {
        Err(format!("{:?} failed ({status}), see above", running.phase).into())
    }
}

impl Running {
    /// kill -9.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ended already, unless something went wrong.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
