//! How threads in the background give way: they work in short slices and rest between them while
//! the engine is in use.
//!
//! A computer with two cores has none to spare for a flush: what comes due while both are taken is
//! late by as long as the scheduler lets the flush go on. Rests are short beside the work, so a
//! flush or a merge takes at most half as long again. It rests only if the engine took a turn since
//! the last rest, and never while the engine has to wait for it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::clock::Stopwatch;

/// Work between two rests.
const SLICE: Duration = Duration::from_micros(500);
/// The length of a rest. The system makes some more of it.
const REST: Duration = Duration::from_micros(200);

/// What the engine tells the threads in the background.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    turns: AtomicU64,
    hurry: AtomicBool,
}

impl Pace {
    /// The engine took a turn; if it is soon to wait for a flush, that is to hurry.
    pub(crate) fn note_turn(&self, hurry: bool) {
        self.turns.fetch_add(1, Relaxed);
        self.hurry.store(hurry, Relaxed);
    }
}

/// The pace of one thread.
struct Slices {
    pace: Arc<Pace>,
    begun: Stopwatch,
    turns: u64,
}

thread_local! {
    static SLICES: RefCell<Option<Slices>> = const { RefCell::new(None) };
}

/// From now on, the calling thread rests as this says.
pub(crate) fn keep(pace: Arc<Pace>) {
    let turns = pace.turns.load(Relaxed);
    SLICES.set(Some(Slices { pace, begun: Stopwatch::start(), turns }));
}

/// A good moment to rest, if the calling thread has worked for long enough. To be called at least
/// every tenth of a millisecond of long work; threads without a pace never rest.
pub(crate) fn rest() {
    SLICES.with_borrow_mut(|slices| {
        let Some(slices) = slices else { return };
        if slices.begun.passed() < SLICE {
            return;
        }
        let turns = slices.pace.turns.load(Relaxed);
        if turns != slices.turns && !slices.pace.hurry.load(Relaxed) {
            std::thread::sleep(REST);
        }
        (slices.turns, slices.begun) = (turns, Stopwatch::start());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a thread takes for work of so many slices, beside an engine that does this.
    fn work(slices: u32, engine: impl Fn(&Pace)) -> Duration {
        let pace = Arc::new(Pace::default());
        keep(Arc::clone(&pace));
        let watch = Stopwatch::start();
        let mut rested = Duration::ZERO;
        for _ in 0..slices {
            let slice = Stopwatch::start();
            while slice.passed() <= SLICE {
                std::hint::spin_loop();
            }
            engine(&pace);
            let before = watch.passed();
            rest();
            rested += watch.passed() - before;
        }
        SLICES.set(None);
        rested
    }

    #[test]
    fn work_rests_beside_turns_only() {
        assert!(work(20, |pace| pace.note_turn(false)) >= 20 * REST);
        // A rest takes at least REST; these take next to nothing, even on a busy computer.
        let quick = |engine: &dyn Fn(&Pace)| (0..5).map(|_| work(20, engine)).min();
        assert!(quick(&|_| {}) < Some(20 * REST));
        assert!(quick(&|pace| pace.note_turn(true)) < Some(20 * REST));
    }
}
