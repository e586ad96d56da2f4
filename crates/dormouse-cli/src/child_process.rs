//! A command that runs for us.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{ChildStderr, ChildStdin, Command};
use tokio::time::timeout;

use crate::exit::Failure;
use crate::{TOKEN_ENV, TOKEN_FILE_ENV};

/// How long a command has to end after SIGTERM.
pub(crate) const TERM_MAX: Duration = Duration::from_secs(5);

/// A running command.
pub(crate) struct Child {
    child: tokio::process::Child,
    pid: Option<Pid>,
    has_group: bool,
}

/// How a command is started.
pub(crate) struct Start<'a> {
    /// The program and its arguments.
    pub(crate) command: &'a [String],
    pub(crate) environment: Vec<(String, String)>,
    /// Whether stdin and stderr are ours to write and read, rather than those we have.
    pub(crate) is_piped: bool,
    /// Whether a signal of the terminal should reach us alone.
    pub(crate) has_group: bool,
}

impl Start<'_> {
    pub(crate) fn spawn(self) -> Result<Child, Failure> {
        let (program, arguments) = match self.command {
            [program, arguments @ ..] => (program, arguments),
            [] => return Err(Failure::usage("there is no command")),
        };
        let mut command = Command::new(program);
        command.args(arguments).kill_on_drop(true);
        // Of the server's token a command gets only what `environment` has: many print their
        // environment into logs.
        command.env_remove(TOKEN_ENV).env_remove(TOKEN_FILE_ENV);
        // No variable can hold a zero byte: such a one is left out, and the command still runs.
        let is_possible = |text: &str| !text.contains('\0');
        command.envs(self.environment.iter().filter(|(_, value)| is_possible(value)).cloned());
        if self.is_piped {
            command.stdin(Stdio::piped()).stderr(Stdio::piped());
        }
        if self.has_group {
            command.process_group(0);
        }
        let child = command.spawn().map_err(|error| {
            // As a shell has it.
            let status = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
            Failure::with_status(status, format!("cannot run {program}: {error}"))
        })?;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Child { child, pid, has_group: self.has_group })
    }
}

impl Child {
    pub(crate) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    pub(crate) fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Its process group, if it has one of its own.
    pub(crate) fn group(&self) -> Option<Pid> {
        self.pid.filter(|_| self.has_group)
    }

    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Signals the command, and all it started if it has a group of its own.
    pub(crate) fn signal(&self, signal: Signal) {
        // Its number may be another's once it was waited for.
        let Some(pid) = self.pid.filter(|_| self.child.id().is_some()) else { return };
        let _ = match self.has_group {
            true => kill_process_group(pid, signal),
            false => kill_process(pid, signal),
        };
    }

    /// Makes it end: politely, then not.
    pub(crate) async fn end(&mut self) {
        self.signal(Signal::TERM);
        if timeout(TERM_MAX, self.child.wait()).await.is_err() {
            self.signal(Signal::KILL);
            let _ = self.child.wait().await;
        }
    }
}

/// The exit code a shell would have.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// How it ended, in words.
pub(crate) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
