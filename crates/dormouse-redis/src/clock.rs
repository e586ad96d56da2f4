//! Redis' clock, estimated: the time that the last script reported, advanced by this machine's
//! steady clock. Due times are compared with Redis' clock only, so servers need not agree on the
//! time.

#![allow(clippy::disallowed_methods, reason = "continues Redis' clock and measures deadlines")]

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dormouse_core::time::Now;
use tokio::sync::watch;

/// For checks of limits that do not depend on the present: scripts decide when a job is due.
pub(crate) const ANY_TIME: Now = Now { steady_ms: 0, wall_ms: 0, fraction: false };

/// The present by this machine's steady clock, for timeouts.
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// A clock for tests: it stands still until it is advanced.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<watch::Sender<u64>>);

impl ManualClock {
    /// Starts at this many ms since the epoch.
    pub fn new(now_ms: u64) -> ManualClock {
        ManualClock(Arc::new(watch::Sender::new(now_ms)))
    }

    /// Ms since the epoch.
    pub fn now_ms(&self) -> u64 {
        *self.0.borrow()
    }

    /// Moves it forward, and wakes what waits for it.
    pub fn advance(&self, ms: u64) {
        self.0.send_modify(|now_ms| *now_ms += ms);
    }

    async fn until(&self, at_ms: u64) {
        let mut changes = self.0.subscribe();
        // The sender lives as long as this clock, so this cannot fail.
        let _reached = changes.wait_for(|&now_ms| now_ms >= at_ms).await;
    }
}

/// Added to every sleep: a poll that is a little early finds nothing and must be repeated.
const MARGIN: Duration = Duration::from_micros(300);

/// A year, lest an instant overflow.
const SLEEP_MS_MAX: u64 = 1 << 35;

/// When a wait is over.
#[derive(Clone, Debug)]
pub(crate) enum Deadline {
    /// By this machine's steady clock, which runs also while Redis is silent.
    Steady(Instant),
    /// By a test's clock.
    Manual(ManualClock, u64),
}

impl Deadline {
    /// Returns when the wait is over.
    pub(crate) async fn reached(&self) {
        match self {
            Deadline::Steady(at) => tokio::time::sleep_until((*at).into()).await,
            Deadline::Manual(clock, at_ms) => clock.until(*at_ms).await,
        }
    }
}

/// How far Redis' clock is from this machine's, as a meter.
#[derive(Clone, Debug)]
pub(crate) struct Skew(Arc<AtomicU64>);

/// No script has reported the time yet.
const UNKNOWN: u64 = u64::MAX;

impl Skew {
    pub(crate) fn new() -> Skew {
        Skew(Arc::new(AtomicU64::new(UNKNOWN)))
    }

    /// In ms, whichever is ahead; `None` = unknown.
    pub(crate) fn ms(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&ms| ms != UNKNOWN)
    }

    fn record(&self, redis_ms: u64) {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall_ms = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
        self.0.store(wall_ms.abs_diff(redis_ms), Ordering::Relaxed);
    }
}

/// How often the skew is measured: it changes slowly, and replies are frequent.
const SKEW_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) enum Clock {
    /// Redis' clock.
    Redis {
        /// An instant of ours, and Redis' time at it.
        reading: Cell<Option<(Instant, u64)>>,
        skew: Skew,
        /// When the skew was measured last.
        noted_at: Cell<Option<Instant>>,
    },
    /// A test's clock; scripts get its time as an argument.
    Manual(ManualClock),
}

impl Clock {
    pub(crate) fn new(manual: Option<ManualClock>, skew: Skew) -> Clock {
        match manual {
            Some(clock) => Clock::Manual(clock),
            None => Clock::Redis { reading: Cell::new(None), skew, noted_at: Cell::new(None) },
        }
    }

    /// The time that scripts must use; `None` = Redis' own.
    pub(crate) fn override_ms(&self) -> Option<u64> {
        match self {
            Clock::Redis { .. } => None,
            Clock::Manual(clock) => Some(clock.now_ms()),
        }
    }

    /// Takes over the time that a script reported which ran between these instants.
    pub(crate) fn observe(&self, now_ms: u64, sent_at: Instant, received_at: Instant) {
        if let Clock::Redis { reading, skew, noted_at } = self
            && now_ms > 0
        {
            // It most likely ran in the middle.
            let half = (received_at - sent_at) / 2;
            reading.set(Some((sent_at + half, now_ms)));
            if noted_at.get().is_none_or(|noted_at| received_at - noted_at >= SKEW_EVERY) {
                noted_at.set(Some(received_at));
                skew.record(now_ms + u64::try_from(half.as_millis()).unwrap_or(0));
            }
        }
    }

    /// The present by Redis' clock; ahead of it only by the drift since the last reply.
    pub(crate) fn now_ms(&self) -> u64 {
        match self {
            Clock::Redis { reading, .. } => reading.get().map_or(0, |(at, now_ms)| {
                now_ms + u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX)
            }),
            Clock::Manual(clock) => clock.now_ms(),
        }
    }

    /// The latest instant that Redis' clock has surely reached: later than a sleep until it ends.
    pub(crate) fn reached_ms(&self) -> u64 {
        match self {
            Clock::Redis { reading, .. } => reading.get().map_or(0, |(at, now_ms)| {
                let passed = at.elapsed().saturating_sub(MARGIN);
                now_ms + u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
            }),
            Clock::Manual(clock) => clock.now_ms(),
        }
    }

    /// The deadline of a wait that begins now.
    pub(crate) fn deadline(&self, wait_ms: u64) -> Deadline {
        match self {
            Clock::Redis { .. } => {
                Deadline::Steady(instant() + Duration::from_millis(wait_ms.min(SLEEP_MS_MAX)))
            }
            Clock::Manual(clock) => {
                Deadline::Manual(clock.clone(), clock.now_ms().saturating_add(wait_ms))
            }
        }
    }

    /// Sleeps until an instant by Redis' clock.
    pub(crate) async fn sleep_until(&self, at_ms: u64) {
        match self {
            Clock::Redis { reading, .. } => {
                let Some((at, now_ms)) = reading.get() else { return };
                // Rechecks come sooner.
                let wait = Duration::from_millis(at_ms.saturating_sub(now_ms).min(SLEEP_MS_MAX));
                tokio::time::sleep_until((at + wait + MARGIN).into()).await;
            }
            Clock::Manual(clock) => clock.until(at_ms).await,
        }
    }
}
