//! A Dormouse server on its usual ports.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server prints one line per protocol when it is ready.
const PROTOCOLS: usize = 3;

pub(super) struct Server {
    child: Child,
}

impl Server {
    /// Starts a server with an empty store and waits until it listens.
    pub(super) fn on_disk(program: &Path, data: &Path) -> Result<Server, String> {
        let _ = std::fs::remove_dir_all(data);
        let mut command = serve(program);
        command.arg("--data").arg(data);
        Server::start(command)
    }

    /// Starts a server over Redis and waits until it listens.
    pub(super) fn on_redis(program: &Path, url: &str) -> Result<Server, String> {
        let mut command = serve(program);
        command.args(["--backend", "redis", "--redis-url", url]);
        Server::start(command)
    }

    fn start(mut command: Command) -> Result<Server, String> {
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| format!("the server does not start: {error}"))?;
        let stdout = child.stdout.take();
        let server = Server { child };
        let lines = stdout.map(|stdout| BufReader::new(stdout).lines().take(PROTOCOLS).flatten());
        let ready = lines.into_iter().flatten().filter(|line| line.contains("listening on"));
        match ready.count() {
            PROTOCOLS => Ok(server),
            some => Err(format!("the server listens on {some} of {PROTOCOLS} addresses")),
        }
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops the server. It is an error if it has ended by itself.
    pub(super) fn stop(mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(format!("the server has ended by itself: {status}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn serve(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["serve", "--beanstalk", "127.0.0.1:11300", "--log", "error"]);
    command
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
