//! How long things take. The only place where measuring reads a clock.

#![allow(clippy::disallowed_methods, reason = "measures requests")]

use std::time::Duration;

use tokio::time::Instant;

/// Runs from its start on.
#[derive(Clone, Copy, Debug)]
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
