//! The clock of breakers, pools and deadlines: the only place of the pushes that reads one.

#![allow(clippy::disallowed_methods, reason = "pushes have deadlines")]

use std::time::Duration;

use tokio::time::Instant;

/// Counts ms since it was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct SteadyClock(Instant);

impl SteadyClock {
    pub(super) fn start() -> SteadyClock {
        SteadyClock(Instant::now())
    }

    pub(super) fn now_ms(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The instant of a time of this clock.
    pub(super) fn at(self, ms: u64) -> Instant {
        self.0 + Duration::from_millis(ms)
    }

    /// The instant so long from now.
    pub(super) fn after(self, span: Duration) -> Instant {
        Instant::now() + span
    }
}
