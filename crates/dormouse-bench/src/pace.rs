//! Open-loop pacing: what is late stays late, so that a stall shows in every operation it hit.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Sleeps to the instant; does not if it is past.
pub(crate) fn sleep_until(instant: Instant) {
    thread::sleep(instant.saturating_duration_since(Instant::now()));
}

/// The wall clock in microseconds, as the engine reads it for absolute times.
pub(crate) fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// A millisecond of the wall clock from which on operations are scheduled.
#[derive(Clone, Copy)]
pub(crate) struct Schedule {
    /// The wall clock at the beginning.
    pub(crate) wall_ms: u64,
    instant: Instant,
}

impl Schedule {
    /// Begins this long from now, at a full millisecond.
    pub(crate) fn begin_in(wait: Duration) -> Schedule {
        let (instant, now_us) = (Instant::now(), wall_us());
        let begin_us = now_us + u64::try_from(wait.as_micros()).unwrap_or(0);
        let wall_ms = begin_us.div_ceil(1_000);
        let instant = instant + Duration::from_micros(wall_ms * 1_000 - now_us);
        Schedule { wall_ms, instant }
    }

    /// The instant of the n-th millisecond.
    pub(crate) fn instant(&self, ms: u64) -> Instant {
        self.instant + Duration::from_millis(ms)
    }
}
