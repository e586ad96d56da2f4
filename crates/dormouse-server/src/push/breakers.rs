//! The breakers of all origins, and the passes by which deliveries report to them.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::breaker::{Breaker, BreakerTiming, Level, Permit};
use super::clock::SteadyClock;
use crate::limits::PUSH_ORIGINS_MAX;

/// Breakers that are looked at for one that can go, before a new one is not shared.
const LOOKS_MAX: usize = 32;

/// The breakers of all origins.
pub(super) struct Breakers {
    timing: BreakerTiming,
    clock: SteadyClock,
    table: Mutex<Table>,
    max: usize,
    /// Another one in each server, so that their probes spread.
    seeds: RandomState,
}

/// The breakers that are shared.
#[derive(Default)]
struct Table {
    cells: HashMap<Arc<str>, Arc<BreakerCell>>,
    /// All of them, the one that is looked at next in front.
    turns: VecDeque<Arc<str>>,
}

/// The breaker of one origin, as all its deliveries see it.
pub(super) struct BreakerCell {
    clock: SteadyClock,
    breaker: Mutex<Breaker>,
    /// Counts changes that waiting consumers have to see.
    changes: watch::Sender<u64>,
    /// Jobs that went back since it closed last.
    sent_back: AtomicU64,
}

/// Leave to deliver. Without a report the delivery counts as abandoned.
pub(super) struct Pass {
    cell: Arc<BreakerCell>,
    is_reported: bool,
}

impl Breakers {
    pub(super) fn new(timing: BreakerTiming, clock: SteadyClock) -> Breakers {
        let (max, seeds) = (PUSH_ORIGINS_MAX, RandomState::new());
        Breakers { timing, clock, table: Mutex::default(), max, seeds }
    }

    /// The breaker of an origin. One that nobody uses and that is over makes room for another; if
    /// none is found soon, this origin's is not shared.
    pub(super) fn cell(&self, origin: &str) -> Arc<BreakerCell> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = table.cells.get(origin) {
            return Arc::clone(cell);
        }
        let has_room = table.cells.len() < self.max || table.drop_one(self.clock.now_ms());
        let breaker = Breaker::new(self.timing, self.seeds.hash_one(origin));
        let cell = Arc::new(BreakerCell {
            clock: self.clock,
            breaker: Mutex::new(breaker),
            changes: watch::Sender::new(0),
            sent_back: AtomicU64::new(0),
        });
        if has_room {
            let origin: Arc<str> = Arc::from(origin);
            table.turns.push_back(Arc::clone(&origin));
            table.cells.insert(origin, Arc::clone(&cell));
        }
        cell
    }
}

impl Table {
    /// Forgets a breaker that nobody uses and that holds up nothing. The lock of all is held, so
    /// only a few are looked at; the next look goes on behind them.
    fn drop_one(&mut self, now_ms: u64) -> bool {
        for _ in 0..LOOKS_MAX {
            let Some(origin) = self.turns.pop_front() else { return false };
            let can_go = |cell: &Arc<BreakerCell>| {
                Arc::strong_count(cell) == 1 && cell.lock().is_over(now_ms)
            };
            if self.cells.get(&origin).is_none_or(can_go) {
                self.cells.remove(&origin);
                return true;
            }
            self.turns.push_back(origin);
        }
        false
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

    /// Counts a job that goes back; says how many did.
    pub(super) fn send_back(&self) -> u64 {
        self.sent_back.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// An operator says that the receiver works.
    pub(super) fn reset(&self) {
        self.change(|breaker, _| breaker.reset());
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
        let is_closed = breaker.is_closed();
        drop(breaker);
        if is_changed {
            if is_closed {
                self.sent_back.store(0, Ordering::Relaxed);
            }
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
        if is_healthy {
            self.cell.sent_back.store(0, Ordering::Relaxed);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn breakers(max: usize, wait_ms: u64) -> Breakers {
        let wait_min = std::time::Duration::from_millis(wait_ms);
        let timing = BreakerTiming { wait_min, ..BreakerTiming::default() };
        Breakers { max, ..Breakers::new(timing, SteadyClock::start()) }
    }

    fn fail(cell: &Arc<BreakerCell>) {
        (0..5).for_each(|_| {
            cell.pass().ok().unwrap().report(false, None);
        });
    }

    fn shared(breakers: &Breakers, origin: &str) -> bool {
        breakers.table.lock().unwrap().cells.contains_key(origin)
    }

    #[tokio::test]
    async fn dead_origins_make_room_when_their_wait_is_past() {
        let breakers = breakers(3, 0);
        for n in 0..100 {
            let origin = format!("https://{n}.example");
            fail(&breakers.cell(&origin));
            assert!(shared(&breakers, &origin), "{origin}");
        }
        let table = breakers.table.lock().unwrap();
        assert_eq!((table.cells.len(), table.turns.len()), (3, 3));
    }

    #[tokio::test]
    async fn those_that_wait_or_are_used_stay() {
        let breakers = breakers(3, 60_000);
        fail(&breakers.cell("open"));
        breakers.cell("held").pass().ok().unwrap().report(true, Some(60_000));
        let used = breakers.cell("used");
        for n in 0..100 {
            breakers.cell(&format!("{n}"));
        }
        for origin in ["open", "held", "used"] {
            assert!(shared(&breakers, origin), "{origin}");
        }
        drop(used);
        breakers.cell("new");
        assert!(shared(&breakers, "new") && !shared(&breakers, "used"));
    }

    #[tokio::test]
    async fn a_look_for_room_is_short() {
        let breakers = breakers(10_000, 60_000);
        for n in 0..10_000 {
            fail(&breakers.cell(&format!("{n}")));
        }
        let begun = breakers.clock.now_ms();
        for n in 0..10_000 {
            breakers.cell(&format!("other {n}"));
        }
        let ms = breakers.clock.now_ms() - begun;
        assert!(ms < 5_000, "{ms} ms");
    }
}
