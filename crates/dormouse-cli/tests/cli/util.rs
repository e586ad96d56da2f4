//! Runs the binary and keeps what it said.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// Checks the exit code, and shows all if it is another.
    pub(crate) fn exits(self, code: i32) -> Done {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}

/// The binary, without this shell's DORMOUSE_ variables.
pub(crate) fn dormouse(url: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dormouse"));
    for (name, _) in std::env::vars() {
        if name.starts_with("DORMOUSE_") {
            command.env_remove(name);
        }
    }
    command.env("DORMOUSE_URL", url).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it to its end.
pub(crate) fn run(url: &str, args: &[&str]) -> Done {
    finish(dormouse(url, args).spawn().unwrap())
}

/// Runs it with something on stdin.
pub(crate) fn run_with(url: &str, args: &[&str], stdin: &[u8]) -> Done {
    let mut child = dormouse(url, args).stdin(Stdio::piped()).spawn().unwrap();
    // It may end without reading.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    finish(child)
}

/// Waits for its end; one that never comes is a failure.
pub(crate) fn finish(mut child: Child) -> Done {
    let pid = rustix::process::Pid::from_child(&child);
    let (ended, has_ended) = mpsc::channel::<()>();
    thread::spawn(move || {
        if has_ended.recv_timeout(TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    });
    let mut stderr = child.stderr.take().unwrap();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        stderr.read_to_end(&mut text).unwrap();
        text
    });
    let mut stdout = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
    let code = child.wait().unwrap().code();
    drop(ended);
    let stderr = reader.join().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done { code, stdout: text(&stdout), stderr: text(&stderr) }
}

/// Sends a signal to a process that we started.
pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}
