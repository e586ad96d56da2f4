//! Commands die with their worker, even if that is killed with SIGKILL.
//!
//! A worker has one guard: a process of this program that holds the read end of a pipe. The worker
//! writes `+<group>` when a command was started and `-<group>` when it was waited for. The pipe
//! ends when the worker does, however it ends; the groups that are left are then ended.
//!
//! The kernel has a signal for the death of a parent (PR_SET_PDEATHSIG). But the child must ask for
//! it between fork and exec, which takes unsafe code; it comes when the *thread* that forked ends;
//! and it reaches the command alone. A guard reaches all that the command has started, with SIGTERM
//! first.

use std::collections::BTreeSet;
use std::io::BufRead as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStdin, Command};
use tokio::sync::Mutex;

use crate::child_process::TERM_MAX;
use crate::exit::Failure;
use crate::{TOKEN_ENV, TOKEN_FILE_ENV};

/// The hidden subcommand that a guard runs as.
pub(crate) const NAME: &str = "work-guard";

/// Ends the commands of a worker that is gone; started by `dormouse work`
#[derive(clap::Args)]
pub(crate) struct Args {}

/// The worker's end of the pipe.
pub(super) struct Guard(Mutex<ChildStdin>);

impl Guard {
    /// Starts the guard of this process.
    pub(super) fn start() -> Result<Guard, Failure> {
        // The program as it runs, even if its file was replaced meanwhile.
        let mut command = Command::new("/proc/self/exe");
        command.arg(NAME).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.env_remove(TOKEN_ENV).env_remove(TOKEN_FILE_ENV);
        // A signal of the terminal is for the worker; the guard outlives it.
        let mut child = command.process_group(0).spawn().map_err(|error| {
            Failure::new(format!("cannot start the guard of the commands: {error}"))
        })?;
        let stdin = child.stdin.take();
        let stdin = stdin.ok_or_else(|| Failure::new("the guard of the commands has no stdin"))?;
        Ok(Guard(Mutex::new(stdin)))
    }

    /// A command with this process group was started.
    pub(super) async fn add(&self, group: Option<Pid>) {
        self.tell('+', group).await;
    }

    /// It was waited for.
    pub(super) async fn remove(&self, group: Option<Pid>) {
        self.tell('-', group).await;
    }

    async fn tell(&self, sign: char, group: Option<Pid>) {
        let Some(group) = group else { return };
        let line = format!("{sign}{}\n", group.as_raw_nonzero());
        // Without a guard the work goes on: it matters only if this process is killed, too.
        let _ = self.0.lock().await.write_all(line.as_bytes()).await;
    }
}

impl Args {
    #[expect(clippy::unnecessary_wraps, reason = "as every subcommand")]
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut groups = BTreeSet::new();
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            match line.split_at_checked(1) {
                Some(("+", group)) => groups.insert(group.to_owned()),
                Some((_, group)) => groups.remove(group),
                None => false,
            };
        }
        let group = |text: &String| text.parse().ok().and_then(Pid::from_raw);
        end(groups.iter().filter_map(group).collect());
        Ok(())
    }
}

/// Makes process groups end: politely, then not.
fn end(mut groups: Vec<Pid>) {
    let signal = |group: &Pid, signal| kill_process_group(*group, signal).is_ok();
    groups.retain(|group| signal(group, Signal::TERM));
    #[expect(clippy::disallowed_methods, reason = "the time that commands have to end")]
    let deadline = Instant::now() + TERM_MAX;
    #[expect(clippy::disallowed_methods, reason = "the time that commands have to end")]
    while !groups.is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
        groups.retain(|group| test_kill_process_group(*group).is_ok());
    }
    for group in &groups {
        signal(group, Signal::KILL);
    }
}
