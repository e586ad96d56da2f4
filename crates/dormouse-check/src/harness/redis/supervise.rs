//! A process that ends with this one, also if this one is killed.
//!
//! A death signal is bound to the thread that started the child, and a thread of a test ends
//! early. A shell that reads from a pipe of this process is bound to the process: at the end of
//! the pipe it kills what it started.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// `$0` is the log, `$1` a directory that goes with the child, the rest is the program. Lines of
/// the input are names of signals, or `keep`: the directory is to stay.
///
/// The shell waits for the child only at the end, so until then its id is hardly anybody else's.
/// When this process ends while the child is stopped, the kernel hangs up on both of them: the
/// shell must not end by that.
const SCRIPT: &str = r#"
trap '' HUP
dir=$1
shift
"$@" </dev/null >>"$0" 2>&1 &
echo $!
while read -r word; do
  case $word in
    keep) dir= ;;
    *) kill -s "$word" $! ;;
  esac
  echo $?
done
kill -s KILL $!
wait
[ -z "$dir" ] || rm -rf "$dir"
"#;

/// A running child and its guard.
#[derive(Debug)]
pub(crate) struct Supervised {
    guard: Child,
    /// Its end is the end of the child.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pid: u32,
}

impl Supervised {
    /// Starts a program; what it prints goes to `log`. The directory is removed after it, unless
    /// it is killed by [`kill`](Self::kill).
    pub(crate) fn start(words: &[String], log: &Path, dir: Option<&Path>) -> Supervised {
        let mut guard = Command::new("sh")
            .args(["-c", SCRIPT])
            .arg(log)
            .arg(dir.unwrap_or(Path::new("")))
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // A Ctrl-C for the tests must not end the guard before its child.
            .process_group(0)
            .spawn()
            .expect("a shell");
        let input = guard.stdin.take();
        let output = BufReader::new(guard.stdout.take().expect("the output was asked for"));
        let mut supervised = Supervised { guard, input, output, pid: 0 };
        supervised.pid = supervised.line().parse().expect("the shell tells the process id");
        supervised
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal by its short name.
    pub(crate) fn signal(&mut self, name: &str) {
        self.tell(name);
    }

    /// kill -9, and waits until it is gone; its directory stays.
    pub(crate) fn kill(mut self) {
        self.tell("keep");
    }

    /// Whether it has not ended by itself.
    pub(crate) fn is_running(&self) -> bool {
        // The state comes after the name, which ends with the last bracket.
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the guard answers");
        line.trim_end().to_owned()
    }

    fn tell(&mut self, word: &str) {
        let input = self.input.as_mut().expect("the guard reads until the end");
        writeln!(input, "{word}").expect("the guard reads");
        assert_eq!(self.line(), "0", "{word} for process {}", self.pid);
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        drop(self.input.take());
        // Nothing can be done about a guard that is gone.
        let _ = self.guard.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(dir: Option<&Path>) -> Supervised {
        let words = ["sleep", "1000"].map(str::to_owned);
        Supervised::start(&words, Path::new("/dev/null"), dir)
    }

    fn is_there(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn a_child_that_is_stopped_ends_with_its_guard_too() {
        let mut child = sleeper(None);
        let pid = child.pid();
        assert!(child.is_running());
        child.signal("STOP");
        drop(child);
        assert!(!is_there(pid));
    }

    #[test]
    fn a_child_that_ended_by_itself_is_seen() {
        let mut child = sleeper(None);
        child.signal("TERM");
        crate::harness::redis::wait::until("its end", std::time::Duration::from_secs(10), || {
            if child.is_running() { Err("it runs".to_owned()) } else { Ok(()) }
        });
    }

    #[test]
    fn a_directory_goes_with_its_child_but_not_by_a_kill() {
        let dir = tempfile::tempdir().unwrap();
        sleeper(Some(dir.path())).kill();
        assert!(dir.path().is_dir());
        drop(sleeper(Some(dir.path())));
        assert!(!dir.path().exists());
    }
}
