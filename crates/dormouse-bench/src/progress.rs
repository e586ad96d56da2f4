//! Progress on stderr: at most one line per second.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::rss;

const EVERY: Duration = Duration::from_secs(1);

/// Prints how far a phase is.
pub(crate) struct Progress {
    phase: &'static str,
    total: u64,
    started: Instant,
    printed_at: Instant,
    done_printed: u64,
}

impl Progress {
    pub(crate) fn new(phase: &'static str, total: u64) -> Progress {
        let now = Instant::now();
        Progress { phase, total, started: now, printed_at: now, done_printed: 0 }
    }

    /// Says so if the last time was long enough ago.
    pub(crate) fn at(&mut self, done: u64) {
        let since = self.printed_at.elapsed();
        if since < EVERY {
            return;
        }
        let rate = (done - self.done_printed) as f64 / since.as_secs_f64();
        let (phase, total, rss) = (self.phase, self.total, rss::peak_mib().unwrap_or(0.0));
        say(&format!("{phase}: {done} of {total}, {rate:.0}/s, peak rss {rss:.0} MiB"), false);
        self.printed_at = Instant::now();
        self.done_printed = done;
    }

    pub(crate) fn end(&self, done: u64) {
        let seconds = self.started.elapsed().as_secs_f64();
        let (phase, rate) = (self.phase, done as f64 / seconds);
        let rss = rss::peak_mib().unwrap_or(0.0);
        say(
            &format!("{phase}: {done} in {seconds:.1} s, {rate:.0}/s, peak rss {rss:.0} MiB"),
            true,
        );
    }
}

/// A line that stays.
pub(crate) fn note(text: &str) {
    say(text, true);
}

/// On a terminal each line takes the place of the one before, unless that stays.
fn say(text: &str, stays: bool) {
    let mut stderr = std::io::stderr().lock();
    // Nobody reads it: that is no reason to stop.
    let _ = if !stderr.is_terminal() {
        writeln!(stderr, "{text}")
    } else if stays {
        writeln!(stderr, "\r\x1b[K{text}")
    } else {
        write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush())
    };
}

/// Removes what does not stay.
pub(crate) fn clear() {
    let mut stderr = std::io::stderr().lock();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r\x1b[K");
    }
}
