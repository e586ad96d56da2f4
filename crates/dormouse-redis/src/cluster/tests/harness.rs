//! Real servers, each with a directory and a port of its own.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use redis::{FromRedisValue, Value};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::cluster::{Call, ClusterClient, Findings, Script, Timeouts, Wakeup, slot_of};
use crate::testing::redis_server;

/// Long enough for a loaded machine; a passing test does not wait this long.
pub(super) const DEADLINE: Duration = Duration::from_secs(20);

/// Short timeouts: the tests make servers silent on purpose.
pub(super) const TIMEOUTS: Timeouts =
    Timeouts { connect_ms: 500, response_ms: 600, wait_ms: 200, gather_ms: 10_000 };

/// Counts its calls; a repeated call gets the number it got before. Returns the caller's argument,
/// so that a reply to the wrong caller shows.
const COUNTING: &str = "
    local number = redis.call('HGET', KEYS[1], ARGV[1])
    if not number then
      number = redis.call('HINCRBY', KEYS[1], 'count', 1)
      redis.call('HSET', KEYS[1], ARGV[1], number)
    end
    return {ARGV[1], tonumber(number)}";

/// A redis-server process.
pub(super) struct Server {
    child: Child,
    pub(super) port: u16,
    options: Vec<String>,
    directory: TempDir,
}

impl Server {
    /// Starts a server and waits until it answers; with another port if this one was taken.
    pub(super) async fn start(options: &[&str]) -> Server {
        let directory = tempfile::tempdir().unwrap();
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        for _ in 0..10 {
            let port = free_port();
            let mut child = spawn(port, &options, directory.path());
            if answers(port, &mut child).await {
                return Server { child, port, options, directory };
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("redis-server does not start with {options:?}");
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// `kill -9`.
    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again on the same port with the same data.
    pub(super) async fn start_again(&mut self) {
        let deadline = Instant::now() + DEADLINE;
        loop {
            self.child = spawn(self.port, &self.options, self.directory.path());
            if answers(self.port, &mut self.child).await {
                return;
            }
            assert!(Instant::now() < deadline, "redis-server does not start again");
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Runs a command on a connection of its own.
    pub(super) async fn query(&self, words: &str) -> Value {
        try_query(self.port, words).await.unwrap_or_else(|error| panic!("{words}: {error}"))
    }

    pub(super) async fn query_text(&self, words: &str) -> String {
        String::from_redis_value(self.query(words).await).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn try_query(port: u16, words: &str) -> redis::RedisResult<Value> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}"))?;
    let config = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(Some(DEADLINE))
        .set_response_timeout(Some(DEADLINE));
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
    let mut words = words.split_ascii_whitespace();
    let mut command = redis::cmd(words.next().unwrap());
    words.for_each(|word| {
        command.arg(word);
    });
    command.query_async(&mut connection).await
}

fn spawn(port: u16, options: &[String], directory: &Path) -> Child {
    let mut command = redis_server();
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    command.args(options).current_dir(directory);
    let log = std::fs::File::create(directory.join("log")).unwrap();
    command.stdin(Stdio::null()).stdout(log).stderr(Stdio::null());
    command.spawn().expect("no redis-check-rdb in PATH: `cargo xtask install` brings it")
}

/// Waits for the first reply, even an error; false if the process ended.
async fn answers(port: u16, child: &mut Child) -> bool {
    let deadline = Instant::now() + DEADLINE;
    while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
        match try_query(port, "PING").await {
            Err(error) if error.is_io_error() || error.code() == Some("LOADING") => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            _ => return true,
        }
    }
    false
}

/// Below the ephemeral ports, so that a restarted server finds its port free.
pub(super) fn free_port() -> u16 {
    loop {
        let random = RandomState::new().build_hasher().finish();
        let port = 10_000 + (random % 20_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A client, the findings of its check, and its wakeups.
pub(super) async fn connect(
    url: &str,
) -> (ClusterClient, Findings, mpsc::UnboundedReceiver<Wakeup>) {
    let (wakeups, received) = mpsc::unbounded_channel();
    let (client, findings) = ClusterClient::open_with(url, 0, wakeups, TIMEOUTS).await.unwrap();
    (client, findings, received)
}

/// The error with which a client is refused.
pub(super) async fn refusal(url: &str, replicas: u32) -> dormouse_core::error::Error {
    let (wakeups, _) = mpsc::unbounded_channel();
    let opened = ClusterClient::open_with(url, replicas, wakeups, TIMEOUTS).await;
    opened.map(|_| ()).unwrap_err()
}

pub(super) fn counting() -> Arc<Script> {
    Arc::new(Script::new(COUNTING.to_owned()))
}

/// A call of the counting script on the hash of `tag`, with a name of its own.
pub(super) fn call(script: &Arc<Script>, tag: &str, name: &str) -> Call {
    Call {
        slot: slot_of(tag.as_bytes()),
        script: Arc::clone(script),
        keys: vec![Bytes::from(format!("dormouse:{{{tag}}}:s"))],
        args: vec![Bytes::from(name.to_owned())],
        replicas: 0,
    }
}

/// Calls, checks that the reply is this call's own, and returns its number.
pub(super) async fn run(client: &ClusterClient, call: &Call) -> u64 {
    let reply =
        tokio::time::timeout(DEADLINE, client.call(call)).await.expect("no answer").unwrap();
    assert!(reply.sent_at <= reply.received_at);
    let (name, number) = <(String, u64)>::from_redis_value(reply.value).unwrap();
    assert_eq!(name.as_bytes(), &call.args[0][..], "a reply to another call");
    number
}

pub(super) async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let deadline = Instant::now() + DEADLINE;
    while !is_so().await {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for this wakeup, and skips others.
pub(super) async fn expect_wakeup(wakeups: &mut mpsc::UnboundedReceiver<Wakeup>, wanted: &Wakeup) {
    let found = async {
        while let Some(expect_wakeup) = wakeups.recv().await {
            if expect_wakeup == *wanted {
                return;
            }
        }
        panic!("no more wakeups");
    };
    tokio::time::timeout(DEADLINE, found).await.unwrap_or_else(|_| panic!("never {wanted:?}"));
}
