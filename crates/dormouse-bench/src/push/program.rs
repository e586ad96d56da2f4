//! The program with `--push`, on a store of its own, and the few requests that are sent to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Result;

/// Its process ends with it.
pub(super) struct Program {
    child: Child,
    addr: SocketAddr,
    #[expect(dead_code, reason = "its drop removes the files")]
    data: TempDir,
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program {
    pub(super) fn start(dir: Option<&Path>, program: Option<&Path>) -> Result<Program> {
        let here = std::env::current_exe()?;
        let here = here.parent().ok_or("this program is in no directory")?;
        let program = program.map_or_else(|| here.join("dormouse"), PathBuf::from);
        let data = TempDir::with_prefix_in("push-", dir.unwrap_or(here))?;
        let mut command = Command::new(&program);
        command.args(["serve", "--http", "127.0.0.1:0", "--resp", "off", "--push", "--push-http"]);
        command.args(["--push-allow", "127.0.0.0/8", "--data"]).arg(data.path());
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| format!("{}: {error}", program.display()))?;
        let stdout = child.stdout.take().ok_or("the server has no stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let addr = line.trim().strip_prefix("http listening on http://");
        let addr = addr.ok_or("the server did not start")?.parse()?;
        Ok(Program { child, addr, data })
    }

    /// Puts jobs, all at once.
    pub(super) fn put_jobs(&mut self, topic: &str, jobs: &[Value]) -> Result<()> {
        self.ask("POST", &format!("/v1/topics/{topic}/jobs"), &json!(jobs)).map(drop)
    }

    /// Pushes a topic to the sink.
    pub(super) fn set_push(&mut self, topic: &str, to: SocketAddr, concurrency: u64) -> Result<()> {
        let body = json!({ "url": format!("http://{to}/"), "concurrency": concurrency });
        self.ask("PUT", &format!("/v1/topics/{topic}/push"), &body).map(drop)
    }

    /// Jobs of a topic in any state.
    pub(super) fn jobs_left(&mut self, topic: &str) -> Result<u64> {
        let stats = self.ask("GET", &format!("/v1/topics/{topic}"), &Value::Null)?;
        let count = |name: &str| stats[name].as_u64().unwrap_or(0);
        Ok(count("delayed") + count("ready") + count("leased") + count("dead"))
    }

    /// The share of one core that the process takes.
    pub(super) fn cpu_percent_over(&self, time: Duration) -> Result<f64> {
        let before = self.ticks()?;
        std::thread::sleep(time);
        let ticks = self.ticks()?.saturating_sub(before) as f64;
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        Ok(100.0 * ticks / per_second / time.as_secs_f64())
    }

    /// Its time in user and system mode.
    fn ticks(&self) -> Result<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let rest = stat.rsplit_once(')').ok_or("/proc has another form")?.1;
        let mut words = rest.split_whitespace().skip(11);
        let mut next = || -> Result<u64> { Ok(words.next().ok_or("no times in /proc")?.parse()?) };
        Ok(next()? + next()?)
    }

    fn ask(&mut self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(self.addr)?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: \
             application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        let (head, body) = reply.split_once("\r\n\r\n").ok_or("half a reply")?;
        if !head.starts_with("HTTP/1.1 20") {
            return Err(format!("{method} {path}: {body}").into());
        }
        Ok(serde_json::from_str(body)?)
    }
}
