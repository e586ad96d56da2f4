//! A Redis that keeps nothing, in the namespace of the suites.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Nobody else is there.
const PORT: u16 = 6379;
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub(super) struct Redis {
    child: Child,
}

impl Redis {
    /// Starts it, and waits until it answers.
    pub(super) fn start(dir: &Path) -> Result<Redis, String> {
        std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        // Debian's redis-tools has the server, under the name of one of its tools: it looks at the
        // name it is called by.
        let child = Command::new("redis-check-rdb")
            .arg0("redis-server")
            .args(["--port", &PORT.to_string(), "--save", "", "--dir"])
            .arg(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("Redis does not start: {error}; `cargo xtask install`"))?;
        let redis = Redis { child };
        let start = Instant::now();
        while let Err(reason) = ask("PING") {
            if start.elapsed() > PATIENCE {
                return Err(format!("Redis does not answer: {reason}"));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(redis)
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{PORT}")
    }

    /// Forgets everything.
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

/// Says a word, which must be answered with something good.
fn ask(word: &str) -> Result<(), String> {
    let mut answer = [0; 64];
    let ask = || -> std::io::Result<usize> {
        let mut socket = TcpStream::connect(("127.0.0.1", PORT))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.write_all(format!("{word}\r\n").as_bytes())?;
        socket.read(&mut answer)
    };
    let length = { ask }().map_err(|error| error.to_string())?;
    match &answer[..length] {
        [b'+', ..] => Ok(()),
        other => Err(String::from_utf8_lossy(other).into_owned()),
    }
}
