//! The program, on the store that was filled.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{Result, rss};

/// Its process ends with it.
pub(super) struct Server {
    child: Child,
    pub(super) addr: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    pub(super) fn start(data: &Path, program: Option<&Path>) -> Result<Server> {
        let here = std::env::current_exe()?;
        let here = here.parent().ok_or("this program is in no directory")?;
        let program = program.map_or_else(|| here.join("dormouse"), PathBuf::from);
        let mut command = Command::new(&program);
        command.args(["serve", "--http", "127.0.0.1:0", "--resp", "off", "--data"]).arg(data);
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| format!("{}: {error}", program.display()))?;
        let stdout = child.stdout.take().ok_or("the server has no stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let addr = line.trim().strip_prefix("http listening on http://");
        let addr = addr.ok_or("the server did not start")?.parse()?;
        Ok(Server { child, addr })
    }

    /// What it holds in memory now.
    pub(super) fn rss_mib(&self) -> Result<f64> {
        let path = format!("/proc/{}/status", self.child.id());
        Ok(rss::field(&path, "VmRSS:")? as f64 / 1_024.0)
    }
}
