//! The breakers of all origins, and the passes by which deliveries report to them.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::breaker::{Breaker, BreakerTiming, Level, Permit};
use super::clock::SteadyClock;
use crate::limits::PUSH_ORIGINS_MAX;

/// The breakers of all origins.
pub(super) struct Breakers {
    timing: BreakerTiming,
    clock: SteadyClock,
    cells: Mutex<HashMap<String, Arc<BreakerCell>>>,
    /// Another one in each server, so that their probes spread.
    seeds: RandomState,
}

/// The breaker of one origin, as all its deliveries see it.
pub(super) struct BreakerCell {
    clock: SteadyClock,
    breaker: Mutex<Breaker>,
    /// Counts changes that waiting consumers have to see.
    changes: watch::Sender<u64>,
}

/// Leave to deliver. Without a report the delivery counts as abandoned.
pub(super) struct Pass {
    cell: Arc<BreakerCell>,
    is_reported: bool,
}

impl Breakers {
    pub(super) fn new(timing: BreakerTiming, clock: SteadyClock) -> Breakers {
        Breakers { timing, clock, cells: Mutex::default(), seeds: RandomState::new() }
    }

    /// The breaker of an origin. Closed ones that nobody uses make room for others; if all are in
    /// use, this origin's is not shared.
    pub(super) fn cell(&self, origin: &str) -> Arc<BreakerCell> {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = cells.get(origin) {
            return Arc::clone(cell);
        }
        if cells.len() >= PUSH_ORIGINS_MAX {
            cells.retain(|_, cell| Arc::strong_count(cell) > 1 || !cell.lock().is_closed());
        }
        let breaker = Breaker::new(self.timing, self.seeds.hash_one(origin));
        let cell = BreakerCell {
            clock: self.clock,
            breaker: Mutex::new(breaker),
            changes: watch::Sender::new(0),
        };
        let cell = Arc::new(cell);
        if cells.len() < PUSH_ORIGINS_MAX {
            cells.insert(origin.to_owned(), Arc::clone(&cell));
        }
        cell
    }
}

impl BreakerCell {
    /// Whether a delivery may start, without starting one.
    pub(super) fn permit(&self) -> Permit {
        self.lock().permit(self.clock.now_ms())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed()
    }

    pub(super) fn level(&self) -> Level {
        self.lock().level(self.clock.now_ms())
    }

    /// Changes of what it permits.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Leave to deliver now, or when to ask again.
    pub(super) fn pass(self: &Arc<BreakerCell>) -> Result<Pass, Permit> {
        match self.lock().take(self.clock.now_ms()) {
            Permit::Pass => Ok(Pass { cell: Arc::clone(self), is_reported: false }),
            later => Err(later),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Breaker> {
        // Nothing panics while it is held.
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a change, and tells those who wait if it opened or closed.
    fn change(&self, apply: impl FnOnce(&mut Breaker, u64)) {
        let now_ms = self.clock.now_ms();
        let mut breaker = self.lock();
        let before = breaker.permit(now_ms);
        apply(&mut breaker, now_ms);
        let is_changed = breaker.permit(now_ms) != before;
        drop(breaker);
        if is_changed {
            self.changes.send_modify(|count| *count += 1);
        }
    }
}

impl Pass {
    /// Reports how the delivery went; says whether the origin has failed for so long that pushes
    /// are to be disabled.
    pub(super) fn report(mut self, is_healthy: bool, hold_ms: Option<u64>) -> bool {
        self.is_reported = true;
        let mut gives_up = false;
        self.cell.change(|breaker, now_ms| {
            match is_healthy {
                true => breaker.succeeded(),
                false => breaker.failed(now_ms),
            }
            if let Some(hold_ms) = hold_ms {
                breaker.hold(now_ms + hold_ms);
            }
            gives_up = breaker.gives_up(now_ms);
        });
        gives_up
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if !self.is_reported {
            self.cell.change(Breaker::abandoned);
        }
    }
}
