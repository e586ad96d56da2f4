//! How long turns take: all other requests wait meanwhile, so a long one is told.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use dormouse_core::meter::{Meter, MeterValue};

use super::meters::{Histogram, SECONDS, meter};
use crate::clock::Stopwatch;

/// A turn beyond this is written to the log.
const LONG: Duration = Duration::from_millis(50);
/// The log gets at most one line in this time.
const LOG_PAUSE: Duration = Duration::from_secs(10);

/// The parts of one turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TurnParts {
    /// Requests that were applied, and the name of those of a kind in a row that took longest.
    pub(super) requests: usize,
    pub(super) slowest: Option<(&'static str, Duration)>,
    pub(super) commands: Duration,
    /// What became due, and portions of long commands.
    pub(super) tick: Duration,
    /// Sealing, the checkpoint of a freeze, and a relaxed write.
    pub(super) journal: Duration,
}

impl TurnParts {
    /// Requests of a kind were applied, one after another.
    pub(super) fn note_requests(&mut self, name: &'static str, count: usize, took: Duration) {
        self.requests += count;
        self.commands += took;
        if self.slowest.is_none_or(|(_, longest)| took > longest) {
            self.slowest = Some((name, took));
        }
    }

    fn total(&self) -> Duration {
        self.commands + self.tick + self.journal
    }
}

/// The turns since the start.
pub(super) struct TurnTimes {
    seconds: Histogram,
    commands_us: AtomicU64,
    tick_us: AtomicU64,
    journal_us: AtomicU64,
    logged: Mutex<Option<Stopwatch>>,
}

impl TurnTimes {
    pub(super) fn new() -> TurnTimes {
        TurnTimes {
            seconds: Histogram::new(&SECONDS, 1e-9),
            commands_us: AtomicU64::new(0),
            tick_us: AtomicU64::new(0),
            journal_us: AtomicU64::new(0),
            logged: Mutex::new(None),
        }
    }

    /// A turn has ended.
    pub(super) fn note(&self, parts: &TurnParts) {
        let total = parts.total();
        self.seconds.note(u64::try_from(total.as_nanos()).unwrap_or(u64::MAX));
        for (longest, took) in [
            (&self.commands_us, parts.commands),
            (&self.tick_us, parts.tick),
            (&self.journal_us, parts.journal),
        ] {
            longest.fetch_max(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
        }
        if total >= LONG {
            self.log(parts);
        }
    }

    fn log(&self, parts: &TurnParts) {
        let Ok(mut logged) = self.logged.try_lock() else { return };
        if logged.as_ref().is_some_and(|logged| logged.passed() < LOG_PAUSE) {
            return;
        }
        *logged = Some(Stopwatch::start());
        let ms = |took: Duration| took.as_secs_f64() * 1e3;
        let (slowest, slowest_took) = parts.slowest.unwrap_or_default();
        tracing::warn!(
            total_ms = ms(parts.total()),
            commands_ms = ms(parts.commands),
            tick_ms = ms(parts.tick),
            journal_ms = ms(parts.journal),
            requests = parts.requests,
            slowest,
            slowest_ms = ms(slowest_took),
            "a turn of the engine took long; other requests waited for it"
        );
    }

    pub(super) fn read(&self) -> [Meter; 4] {
        let longest = |us: &AtomicU64| MeterValue::Seconds(us.load(Relaxed) as f64 / 1e6);
        [
            meter("turn_seconds", "How long turns of the engine took", self.seconds.value()),
            meter(
                "turn_commands_longest_seconds",
                "Longest time that one turn spent on requests",
                longest(&self.commands_us),
            ),
            meter(
                "turn_tick_longest_seconds",
                "Longest time that one turn spent on what became due",
                longest(&self.tick_us),
            ),
            meter(
                "turn_journal_longest_seconds",
                "Longest time that one turn spent on the journal and its checkpoint",
                longest(&self.journal_us),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_part_and_the_slowest_request_stay() {
        let times = TurnTimes::new();
        let ms = Duration::from_millis;
        for (list, tick) in [(3, 9), (5, 1)] {
            let mut parts = TurnParts { tick: ms(tick), ..Default::default() };
            parts.note_requests("put", 1, ms(1));
            parts.note_requests("list", 1, ms(list));
            parts.note_requests("ack", 1, ms(1));
            assert_eq!((parts.requests, parts.slowest), (3, Some(("list", ms(list)))));
            times.note(&parts);
        }
        let [_, commands, tick, journal] = times.read();
        assert_eq!(commands.value, MeterValue::Seconds(0.007));
        assert_eq!(tick.value, MeterValue::Seconds(0.009));
        assert_eq!(journal.value, MeterValue::Seconds(0.0));
    }
}
