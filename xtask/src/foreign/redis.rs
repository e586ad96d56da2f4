//! A Redis without persistence, in the network namespace of the suites.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The usual port: the namespace has no other server.
const PORT: u16 = 6379;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_EVERY: Duration = Duration::from_millis(10);

pub(super) struct Redis {
    child: Child,
}

impl Redis {
    /// Starts the server and waits until it answers.
    pub(super) fn start(dir: &Path) -> Result<Redis, String> {
        std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        // Debian's redis-tools contains the server under the name of one of its tools: the program
        // behaves by the name it is called by.
        let child = Command::new("redis-check-rdb")
            .arg0("redis-server")
            .args(["--port", &PORT.to_string(), "--save", "", "--dir"])
            .arg(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("Redis does not start: {error}; run `cargo xtask install`"))?;
        let redis = Redis { child };
        let start = Instant::now();
        while let Err(reason) = ask("PING") {
            if start.elapsed() > ANSWER_TIMEOUT {
                return Err(format!("Redis does not answer: {reason}"));
            }
            thread::sleep(POLL_EVERY);
        }
        Ok(redis)
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{PORT}")
    }

    /// Removes all keys.
    pub(super) fn clear(&self) -> Result<(), String> {
        ask("FLUSHALL")
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends an inline command, which must be answered with a status.
fn ask(word: &str) -> Result<(), String> {
    let mut answer = [0; 64];
    let ask = || -> std::io::Result<usize> {
        let mut socket = TcpStream::connect(("127.0.0.1", PORT))?;
        socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        socket.write_all(format!("{word}\r\n").as_bytes())?;
        socket.read(&mut answer)
    };
    let length = { ask }().map_err(|error| error.to_string())?;
    match &answer[..length] {
        [b'+', ..] => Ok(()),
        other => Err(String::from_utf8_lossy(other).into_owned()),
    }
}
