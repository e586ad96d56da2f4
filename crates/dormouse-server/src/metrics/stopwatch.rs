//! Measures durations: the only place of the metrics that reads a clock.

#![allow(clippy::disallowed_methods, reason = "measures requests")]

use std::time::Duration;

use tokio::time::Instant;

/// Measures the time since its start; who started earlier is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// The time since.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
