//! A server's process, and what it uses. It ends with this program.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Result;

/// Lines of its log that say why it ended.
const LAST_LINES: usize = 5;

pub(in crate::peers) struct Process {
    child: Child,
    /// Its output, stdout and stderr.
    log: PathBuf,
}

impl Process {
    /// Starts a program with its words. The kernel kills it when this thread ends, however it
    /// ends, where there is a `setpriv` to ask for that.
    pub(in crate::peers) fn start(words: &[String], log: &Path) -> Result<Process> {
        let mut guarded: Vec<String> = Vec::new();
        if on_path("setpriv").is_some() {
            guarded.extend(["setpriv", "--pdeathsig", "KILL"].map(str::to_owned));
        }
        guarded.extend_from_slice(words);
        let [program, rest @ ..] = guarded.as_slice() else { return Err("no program".into()) };
        let out = File::options().create(true).append(true).open(log)?;
        let child = Command::new(program)
            .args(rest)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        Ok(Process { child, log: log.to_owned() })
    }

    pub(in crate::peers) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not ended by itself.
    pub(in crate::peers) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// kill -9; it is gone when this returns.
    pub(in crate::peers) fn kill(&mut self) {
        // Nothing is wrong if it ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Its output so far.
    pub(in crate::peers) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Why it ended, by its own words.
    pub(in crate::peers) fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("; ")
    }

    /// Processor time of all its threads.
    pub(in crate::peers) fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id()))?;
        // The name ends with the last bracket; user and system time are the 14th and 15th field.
        let rest = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
        let ticks = rest.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        let ticks: u64 = ticks.sum::<std::result::Result<u64, _>>()?;
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
    }

    /// Memory it has now.
    pub(in crate::peers) fn memory_bytes(&self) -> Result<u64> {
        self.status("VmRSS:")
    }

    /// The most memory it ever had.
    pub(in crate::peers) fn memory_peak_bytes(&self) -> Result<u64> {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> Result<u64> {
        let kib = crate::rss::field(&format!("/proc/{}/status", self.id()), field)?;
        Ok(kib * 1_024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Where a program is, if it is.
pub(in crate::peers) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin"), "/sbin".into()]);
    dirs.map(|dir| dir.join(name)).find(|path| path.is_file())
}
