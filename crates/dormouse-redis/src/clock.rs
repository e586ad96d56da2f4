//! Redis' clock, as seen from here: what scripts said, carried on by our own steady clock.

#![allow(clippy::disallowed_methods, reason = "continues Redis' clock and measures deadlines")]

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dormouse_core::time::Now;
use tokio::sync::watch;

/// For checks, which ask whether a time is within its limits: when it is, the scripts know.
pub(crate) const ANY_TIME: Now = Now { steady_ms: 0, wall_ms: 0, fraction: false };

/// The present by our own clock, which measures how long people wait.
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// A clock for tests: it stands still until it is moved.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<watch::Sender<u64>>);

impl ManualClock {
    /// A clock that shows this many ms since the epoch.
    pub fn new(now_ms: u64) -> ManualClock {
        ManualClock(Arc::new(watch::Sender::new(now_ms)))
    }

    /// What it shows.
    pub fn now_ms(&self) -> u64 {
        *self.0.borrow()
    }

    /// Time passes.
    pub fn advance(&self, ms: u64) {
        self.0.send_modify(|now_ms| *now_ms += ms);
    }

    async fn until(&self, at_ms: u64) {
        let mut changes = self.0.subscribe();
        // The sender lives as long as this clock, so there is no error to come.
        let _reached = changes.wait_for(|&now_ms| now_ms >= at_ms).await;
    }
}

/// Who wakes a little early asks for nothing, and again, and again.
const MARGIN: Duration = Duration::from_micros(300);

/// How far Redis' clock is from this machine's, for whoever wants to see it.
#[derive(Clone, Debug)]
pub(crate) struct Skew(Arc<AtomicU64>);

/// Nobody has seen Redis' clock yet.
const UNKNOWN: u64 = u64::MAX;

impl Skew {
    pub(crate) fn new() -> Skew {
        Skew(Arc::new(AtomicU64::new(UNKNOWN)))
    }

    /// In ms, whichever is ahead; `None` if it is not known.
    pub(crate) fn ms(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&ms| ms != UNKNOWN)
    }

    fn record(&self, redis_ms: u64) {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall_ms = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
        self.0.store(wall_ms.abs_diff(redis_ms), Ordering::Relaxed);
    }
}

/// The skew is looked at this often: it changes slowly, and scripts land all the time.
const SKEW_EVERY: Duration = Duration::from_secs(1);

/// The clock of the backend.
#[derive(Debug)]
pub(crate) enum Clock {
    /// Redis' own.
    Redis {
        /// What it showed at one of our instants.
        reading: Cell<Option<(Instant, u64)>>,
        skew: Skew,
        /// When the skew was noted last.
        noted_at: Cell<Option<Instant>>,
    },
    /// A test's; scripts are told.
    Manual(ManualClock),
}

impl Clock {
    pub(crate) fn new(manual: Option<ManualClock>, skew: Skew) -> Clock {
        match manual {
            Some(clock) => Clock::Manual(clock),
            None => Clock::Redis { reading: Cell::new(None), skew, noted_at: Cell::new(None) },
        }
    }

    /// What scripts are to take for the present; `None` = what Redis has.
    pub(crate) fn override_ms(&self) -> Option<u64> {
        match self {
            Clock::Redis { .. } => None,
            Clock::Manual(clock) => Some(clock.now_ms()),
        }
    }

    /// A script that ran between these instants saw this time.
    pub(crate) fn observe(&self, now_ms: u64, sent_at: Instant, received_at: Instant) {
        if let Clock::Redis { reading, skew, noted_at } = self
            && now_ms > 0
        {
            // Most likely it ran in the middle.
            let half = (received_at - sent_at) / 2;
            reading.set(Some((sent_at + half, now_ms)));
            if noted_at.get().is_none_or(|noted_at| received_at - noted_at >= SKEW_EVERY) {
                noted_at.set(Some(received_at));
                skew.record(now_ms + u64::try_from(half.as_millis()).unwrap_or(0));
            }
        }
    }

    /// The present by Redis' clock; never ahead of it but by a drift of seconds per day.
    pub(crate) fn now_ms(&self) -> u64 {
        match self {
            Clock::Redis { reading, .. } => reading.get().map_or(0, |(at, now_ms)| {
                now_ms + u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX)
            }),
            Clock::Manual(clock) => clock.now_ms(),
        }
    }

    /// Ends when so much time has passed.
    pub(crate) async fn sleep(&self, ms: u64) {
        match self {
            Clock::Redis { .. } => tokio::time::sleep(Duration::from_millis(ms)).await,
            Clock::Manual(clock) => clock.until(clock.now_ms() + ms).await,
        }
    }

    /// Ends when that instant has come by Redis' clock.
    pub(crate) async fn sleep_until(&self, at_ms: u64) {
        match self {
            Clock::Redis { reading, .. } => {
                let Some((at, now_ms)) = reading.get() else { return };
                // Beyond a year nothing is waited for: a look comes sooner.
                let wait = Duration::from_millis(at_ms.saturating_sub(now_ms).min(1 << 35));
                tokio::time::sleep_until((at + wait + MARGIN).into()).await;
            }
            Clock::Manual(clock) => clock.until(at_ms).await,
        }
    }
}
