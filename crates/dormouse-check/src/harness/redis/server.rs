//! A real `redis-server` in a directory of its own.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::client::resp::raw::{Reply, ask};
use crate::harness::redis::config::RedisConfig;
use crate::harness::redis::ports::Port;
use crate::harness::redis::supervise::Supervised;
use crate::harness::redis::wait::until;

/// No server with the data of a test takes longer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Somebody else may take a port between the look at it and the start.
const TRIES: usize = 5;

/// A server; killed when it is dropped, and when this process ends.
#[derive(Debug)]
pub struct RedisServer {
    config: RedisConfig,
    /// Dropped before its directory and its port are given back.
    process: Option<Supervised>,
    port: Port,
    dir: TempDir,
}

impl RedisServer {
    /// Starts one on a free port and waits until it serves.
    pub fn start(config: RedisConfig) -> RedisServer {
        let mut failure = String::new();
        for _ in 0..TRIES {
            let dir = tempfile::Builder::new().prefix("dormouse-redis-").tempdir();
            let dir = dir.expect("a temporary directory");
            let port = Port::claim();
            let mut server = RedisServer { config: config.clone(), process: None, port, dir };
            match server.run() {
                Ok(()) => return server,
                Err(reason) if reason.contains("Address already in use") => failure = reason,
                Err(reason) => panic!("redis-server does not start: {reason}"),
            }
        }
        panic!("redis-server finds no port: {failure}");
    }

    /// `redis://host:port`.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// The address it listens on, without its port.
    pub fn host(&self) -> String {
        self.config.address.to_string()
    }

    /// `host:port`.
    pub fn address(&self) -> String {
        format!("{}:{}", self.config.address, self.port())
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The process; panics while it is killed.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("the server was started").pid()
    }

    /// The directory of its files.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Whether it was neither killed nor ended by itself.
    pub fn is_running(&self) -> bool {
        self.process.as_ref().is_some_and(Supervised::is_running)
    }

    /// Runs one command; panics if the server is not there, gives its error as a reply.
    pub fn command<W: AsRef<[u8]>>(&self, words: &[W]) -> Reply {
        match self.try_command(words) {
            Ok(reply) => reply,
            Err(error) => panic!("no answer of {}: {error}\n{}", self.address(), self.log()),
        }
    }

    /// Runs one command; an error if the server is not there.
    pub fn try_command<W: AsRef<[u8]>>(&self, words: &[W]) -> io::Result<Reply> {
        ask(&self.socket(), words)
    }

    /// Runs one command that must not give an error.
    pub fn must<W: AsRef<[u8]>>(&self, words: &[W]) -> Reply {
        let reply = self.command(words);
        if let Some(text) = reply.error() {
            let words: Vec<_> = words.iter().map(|w| String::from_utf8_lossy(w.as_ref())).collect();
            panic!("{} refuses `{}`: {text}", self.address(), words.join(" "));
        }
        reply
    }

    /// kill -9; it is gone when this returns.
    pub fn kill_nine(&mut self) {
        self.process.take().expect("the server was started").kill();
    }

    /// Starts it again, after a kill -9 if it still runs, with the same port and directory, and
    /// waits until it serves.
    pub fn restart(&mut self) {
        if self.process.is_some() {
            self.kill_nine();
        }
        if let Err(reason) = self.run() {
            panic!("redis-server does not start again: {reason}");
        }
    }

    /// SIGSTOP: connections stay and are taken, nothing is answered.
    pub fn freeze(&mut self) {
        self.process.as_mut().expect("the server was started").signal("STOP");
    }

    /// SIGCONT, after [`freeze`](Self::freeze).
    pub fn thaw(&mut self) {
        self.process.as_mut().expect("the server was started").signal("CONT");
    }

    /// Its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        self.dir().join("log")
    }

    fn socket(&self) -> PathBuf {
        self.dir().join("socket")
    }

    /// Starts the process and waits until it serves; an error if it ended instead.
    fn run(&mut self) -> Result<(), String> {
        let config = self.dir().join("redis.conf");
        // A sentinel keeps in this file what it has learned.
        if !self.config.sentinel || !config.exists() {
            let text = self.config.lines(self.port(), self.dir(), &self.socket());
            fs::write(&config, text).map_err(|error| format!("{}: {error}", config.display()))?;
        }
        let words = self.words(&config)?;
        let (socket, dir) = (self.socket(), self.dir.path());
        let process = Supervised::start(&words, &self.log_path(), Some(dir));
        let pid = process.pid();
        let is_serving = until("redis-server", TIMEOUT, || match ask(&socket, &["PING"]) {
            // While it loads its file it answers with an error.
            Ok(reply) if reply.error().is_none() => Ok(true),
            other if process.is_running() => Err(format!("process {pid} says {other:?}")),
            _ => Ok(false),
        });
        if is_serving {
            self.process = Some(process);
            return Ok(());
        }
        process.kill();
        Err(self.log())
    }

    fn words(&self, config: &Path) -> Result<Vec<String>, String> {
        let mut words = Vec::new();
        if let Some(pid) = self.config.network_of {
            words.extend(["nsenter".to_owned(), format!("--target={pid}"), "--net".to_owned()]);
        }
        words.extend_from_slice(&self.config.under);
        words.push(self.program()?);
        words.push(config.display().to_string());
        if self.config.sentinel {
            words.push("--sentinel".to_owned());
        }
        Ok(words)
    }

    /// Debian's redis-tools has the server too, but not under its name: one program looks at the
    /// name it is called by. The package redis-server is a link and a service nobody wants here.
    fn program(&self) -> Result<String, String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let find = |name: &str| {
            std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.is_file())
        };
        if find("redis-server").is_some() {
            return Ok("redis-server".to_owned());
        }
        let same = find("redis-check-rdb")
            .ok_or("there is no redis-server on the path; `cargo xtask install` brings it")?;
        let link = self.dir().join("redis-server");
        if !link.is_symlink() {
            symlink(&same, &link).map_err(|error| format!("{}: {error}", link.display()))?;
        }
        Ok(link.display().to_string())
    }
}
