//! The only place that reads a clock.
//!
//! A `TimeSource` gives raw readings; `SteadyClock` makes of them the two clocks the rules know.
//! Steady advances only with CLOCK_BOOTTIME (which also counts suspend). It is saved with every
//! batch; on the same boot it goes on from there by boottime, on another boot by the wall time
//! that passed, never backwards. So a stepped wall clock neither moves a relative delay nor fires
//! one early.
//!
//! Wall is steady plus an offset of whole ms, which is measured at the start and again only when
//! the wall clock was stepped. The machine's two clocks tick out of phase: rounded down each by
//! itself, their distance would change by 1 ms within each ms, and with it the due time that
//! callers are told of one and the same job.

#![allow(clippy::disallowed_methods, reason = "the one place from which the engine takes its time")]

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dormouse_core::time::Now;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// A reading of the machine's clocks, rounded down to ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Time since boot, suspend included.
    pub boottime_ms: u64,
    /// Time since the Unix epoch.
    pub wall_ms: u64,
    /// How far into the present millisecond of `boottime_ms` it is.
    pub into_ms_us: u32,
    /// The same of `wall_ms`: the two clocks tick out of phase.
    pub wall_into_ms_us: u32,
}

/// Where time comes from.
pub trait TimeSource: Send + Sync {
    /// The present instant.
    fn read(&self) -> Reading;

    /// Names the boot that `boottime_ms` counts from.
    fn boot_id(&self) -> [u8; 16];

    /// Registers what to call when time was moved by hand. Real time moves by itself.
    fn on_change(&self, wake: Arc<dyn Fn() + Send + Sync>);

    /// Whether a jump of time means that this process stood still (SIGSTOP, a paused VM), so that
    /// commands which waited meanwhile count as given before it.
    fn jumps_are_pauses(&self) -> bool {
        true
    }
}

/// The clocks of this computer.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// How long a reading of both clocks takes if nothing interrupts it, with room to spare, and how
/// often it is tried.
const READING_NS_MAX: i64 = 5_000;
const READING_TRIES: u32 = 8;

/// Wall less boottime when both were last read without an interruption.
static DISTANCE_NS: AtomicI64 = AtomicI64::new(0);

/// From one reading of a clock to another.
fn between_ns(from: Timespec, to: Timespec) -> i64 {
    let whole_ns = (to.tv_sec - from.tv_sec).saturating_mul(1_000_000_000);
    whole_ns.saturating_add(to.tv_nsec - from.tv_nsec)
}

/// Boottime and wall time. A thread that is interrupted between the two readings would see a step
/// of the wall clock.
fn read_both() -> (Timespec, Timespec) {
    let mut boot = clock_gettime(ClockId::Boottime);
    let mut wall = clock_gettime(ClockId::Realtime);
    // As far apart as they were: nothing came between, and no third reading has to prove it.
    let known_ns = DISTANCE_NS.load(Relaxed);
    if between_ns(boot, wall).abs_diff(known_ns) < READING_NS_MAX.unsigned_abs() {
        return (boot, wall);
    }
    for _ in 1..READING_TRIES {
        if between_ns(boot, clock_gettime(ClockId::Boottime)) < READING_NS_MAX {
            DISTANCE_NS.store(between_ns(boot, wall), Relaxed);
            break;
        }
        boot = clock_gettime(ClockId::Boottime);
        wall = clock_gettime(ClockId::Realtime);
    }
    (boot, wall)
}

impl TimeSource for SystemClock {
    fn read(&self) -> Reading {
        let (boot, wall) = read_both();
        Reading {
            boottime_ms: to_ms(boot.tv_sec, boot.tv_nsec),
            wall_ms: to_ms(wall.tv_sec, wall.tv_nsec),
            into_ms_us: into_ms_us(boot.tv_nsec),
            wall_into_ms_us: into_ms_us(wall.tv_nsec),
        }
    }

    fn boot_id(&self) -> [u8; 16] {
        // Without /proc every start counts as a new boot: the wall clock then carries on.
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes()
    }

    fn on_change(&self, _wake: Arc<dyn Fn() + Send + Sync>) {}
}

/// Milliseconds of a time since boot or epoch; a clock set before 1970 counts as 1970.
fn to_ms(seconds: i64, nanos: i64) -> u64 {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    seconds.saturating_mul(1_000).saturating_add(u64::try_from(nanos).unwrap_or(0) / 1_000_000)
}

fn into_ms_us(nanos: i64) -> u32 {
    u32::try_from(nanos % 1_000_000 / 1_000).unwrap_or(0)
}

/// A clock that stands still until it is moved, for tests.
///
/// ```
/// # use dormouse_disk::clock::{TimeSource, VirtualClock};
/// # use std::time::Duration;
/// let clock = VirtualClock::new();
/// let before = clock.read().wall_ms;
/// clock.advance(Duration::from_secs(1800));
/// assert_eq!(clock.read().wall_ms, before + 1_800_000);
/// ```
#[derive(Clone)]
pub struct VirtualClock(Arc<Mutex<VirtualState>>);

struct VirtualState {
    reading: Reading,
    boot: u128,
    wakes: Vec<Arc<dyn Fn() + Send + Sync>>,
}

impl VirtualClock {
    /// Starts at 2026-01-01T00:00:00Z.
    pub fn new() -> VirtualClock {
        let reading = Reading {
            boottime_ms: 0,
            wall_ms: 1_767_225_600_000,
            into_ms_us: 0,
            wall_into_ms_us: 0,
        };
        VirtualClock(Arc::new(Mutex::new(VirtualState { reading, boot: 1, wakes: Vec::new() })))
    }

    /// Starts at this many ms since the epoch.
    pub fn starting_at(wall_ms: u64) -> VirtualClock {
        let clock = VirtualClock::new();
        clock.change(|time| time.reading.wall_ms = wall_ms);
        clock
    }

    /// Time passes.
    pub fn advance(&self, by: Duration) {
        let by_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.change(|time| {
            time.reading.boottime_ms += by_ms;
            time.reading.wall_ms += by_ms;
        });
    }

    /// Somebody sets the wall clock forward (or back) although no time passed.
    pub fn step_wall_ms(&self, by_ms: i64) {
        self.change(|time| {
            time.reading.wall_ms = time.reading.wall_ms.saturating_add_signed(by_ms);
        });
    }

    /// The computer starts again after being off for some time.
    pub fn reboot(&self, off: Duration) {
        let off_ms = u64::try_from(off.as_millis()).unwrap_or(u64::MAX);
        self.change(|time| {
            time.reading.boottime_ms = 0;
            time.reading.wall_ms += off_ms;
            time.boot += 1;
        });
    }

    fn change(&self, change: impl FnOnce(&mut VirtualState)) {
        let wakes = {
            let mut time = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut time);
            time.wakes.clone()
        };
        // Outside the lock: a woken thread reads the clock at once.
        wakes.iter().for_each(|wake| wake());
    }
}

impl Default for VirtualClock {
    fn default() -> VirtualClock {
        VirtualClock::new()
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VirtualClock").field(&self.read()).finish()
    }
}

impl TimeSource for VirtualClock {
    fn read(&self) -> Reading {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).reading
    }

    fn boot_id(&self) -> [u8; 16] {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).boot.to_be_bytes()
    }

    fn on_change(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).wakes.push(wake);
    }

    fn jumps_are_pauses(&self) -> bool {
        false
    }
}

/// An instant of this process by which something must be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(std::time::Instant);

impl Deadline {
    pub(crate) fn after(span: Duration) -> Deadline {
        Deadline(std::time::Instant::now() + span)
    }

    /// How long until then; zero once it is past.
    pub(crate) fn left(self) -> Duration {
        self.0.saturating_duration_since(std::time::Instant::now())
    }
}

/// Measures how long something of this process takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(std::time::Instant::now())
    }

    pub(crate) fn passed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Measures the parts of something, with one reading of the clock between two of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Laps {
    begun: std::time::Instant,
    last: std::time::Instant,
}

impl Laps {
    pub(crate) fn start() -> Laps {
        let begun = std::time::Instant::now();
        Laps { begun, last: begun }
    }

    /// The time since the last lap ended. Ends one.
    pub(crate) fn lap(&mut self) -> Duration {
        let before = std::mem::replace(&mut self.last, std::time::Instant::now());
        self.last - before
    }

    /// All laps together.
    pub(crate) fn total(&self) -> Duration {
        self.last - self.begun
    }
}

/// A saved instant from which the steady clock can go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedClock {
    /// The boot in which it was saved.
    pub boot_id: [u8; 16],
    /// Time since that boot.
    pub boottime_ms: u64,
    /// The steady clock then.
    pub steady_ms: u64,
    /// The wall clock then.
    pub wall_ms: u64,
}

/// Makes the two clocks of the rules from raw readings.
#[derive(Clone, Debug)]
pub struct SteadyClock {
    boottime_ms: u64,
    steady_ms: u64,
    /// Wall less steady, rounded down: an absolute time is late by less than a ms, never early.
    wall_offset_ms: Cell<i64>,
}

/// How much less than before the distance of the clocks may be read without being a step: two
/// readings are not made at the same instant.
const OFFSET_NOISE_US: i64 = 50;

impl SteadyClock {
    /// A new store: steady begins as the wall clock.
    pub fn begin(reading: Reading) -> SteadyClock {
        SteadyClock::new(reading, reading.wall_ms)
    }

    fn new(reading: Reading, steady_ms: u64) -> SteadyClock {
        let clock = SteadyClock {
            boottime_ms: reading.boottime_ms,
            steady_ms,
            wall_offset_ms: Cell::new(0),
        };
        clock.wall_offset_ms.set(clock.offset_us(reading).div_euclid(1_000));
        clock
    }

    /// A store that was open before.
    pub fn resume(saved: SavedClock, boot_id: [u8; 16], reading: Reading) -> SteadyClock {
        let same_boot = saved.boot_id == boot_id && saved.boot_id != [0; 16];
        let passed_ms = if same_boot && reading.boottime_ms >= saved.boottime_ms {
            reading.boottime_ms - saved.boottime_ms
        } else {
            reading.wall_ms.saturating_sub(saved.wall_ms)
        };
        SteadyClock::new(reading, saved.steady_ms.saturating_add(passed_ms))
    }

    fn steady_ms(&self, reading: Reading) -> u64 {
        self.steady_ms.saturating_add(reading.boottime_ms.saturating_sub(self.boottime_ms))
    }

    /// Wall less steady, to the microsecond.
    fn offset_us(&self, reading: Reading) -> i64 {
        let us = |ms: u64, into_ms_us: u32| {
            i64::try_from(ms).unwrap_or(i64::MAX).saturating_mul(1_000) + i64::from(into_ms_us)
        };
        us(reading.wall_ms, reading.wall_into_ms_us)
            .saturating_sub(us(self.steady_ms(reading), reading.into_ms_us))
    }

    /// Both clocks at a reading.
    pub fn now(&self, reading: Reading) -> Now {
        let offset_us = self.offset_us(reading);
        let beyond_us = offset_us.saturating_sub(self.wall_offset_ms.get().saturating_mul(1_000));
        if !(-OFFSET_NOISE_US..1_000).contains(&beyond_us) {
            self.wall_offset_ms.set(offset_us.div_euclid(1_000));
        }
        let steady_ms = self.steady_ms(reading);
        Now {
            steady_ms,
            wall_ms: steady_ms.saturating_add_signed(self.wall_offset_ms.get()),
            fraction: reading.into_ms_us > 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_core::time::Clock;

    use super::*;

    fn saved() -> SavedClock {
        SavedClock { boot_id: [1; 16], boottime_ms: 500, steady_ms: 10_000, wall_ms: 10_000 }
    }

    #[test]
    fn same_boot_goes_on_by_boottime() {
        let reading =
            Reading { boottime_ms: 800, wall_ms: 3_600_000, into_ms_us: 0, wall_into_ms_us: 0 };
        let clock = SteadyClock::resume(saved(), [1; 16], reading);
        assert_eq!(clock.now(reading).steady_ms, 10_300);
    }

    #[test]
    fn other_boot_goes_on_by_wall_time_and_never_back() {
        let later = Reading { boottime_ms: 5, wall_ms: 12_000, into_ms_us: 0, wall_into_ms_us: 0 };
        assert_eq!(SteadyClock::resume(saved(), [2; 16], later).now(later).steady_ms, 12_000);
        let earlier = Reading { boottime_ms: 5, wall_ms: 7_000, into_ms_us: 0, wall_into_ms_us: 0 };
        assert_eq!(SteadyClock::resume(saved(), [2; 16], earlier).now(earlier).steady_ms, 10_000);
    }

    /// A reading this many microseconds after the start of clocks that tick out of phase.
    fn out_of_phase(us: u64) -> Reading {
        let (boot_us, wall_us) = (5_000_300 + us, 1_767_225_600_000_700 + us);
        Reading {
            boottime_ms: boot_us / 1_000,
            wall_ms: wall_us / 1_000,
            into_ms_us: (boot_us % 1_000) as u32,
            wall_into_ms_us: (wall_us % 1_000) as u32,
        }
    }

    #[test]
    fn an_instant_reads_the_same_at_every_moment() {
        let clock = SteadyClock::begin(out_of_phase(0));
        let due_at = clock.now(out_of_phase(0)).after(10_000);
        let told = clock.now(out_of_phase(0)).to_wall(Clock::Steady, due_at);
        for us in (0..20_000).step_by(37) {
            let reading = out_of_phase(us);
            let now = clock.now(reading);
            assert_eq!(now.to_wall(Clock::Steady, due_at), told, "after {us} us");
            let behind = reading.wall_ms - now.wall_ms;
            assert!(behind <= 1, "wall is {behind} ms behind");
        }
    }

    #[test]
    fn a_step_of_the_wall_clock_is_seen_at_once() {
        let clock = SteadyClock::begin(out_of_phase(0));
        for (us, by_ms) in [(100, 1), (200, -1), (900, 3_600_000), (950, -7_200_000)] {
            let before = clock.now(out_of_phase(us)).wall_ms;
            let mut stepped = out_of_phase(us);
            stepped.wall_ms = stepped.wall_ms.saturating_add_signed(by_ms);
            assert_eq!(clock.now(stepped).wall_ms, before.saturating_add_signed(by_ms));
        }
    }

    #[test]
    fn a_stepped_wall_clock_moves_no_steady_time() {
        let clock = VirtualClock::new();
        let steady = SteadyClock::begin(clock.read());
        let before = steady.now(clock.read());
        clock.step_wall_ms(3_600_000);
        assert_eq!(steady.now(clock.read()).steady_ms, before.steady_ms);
        clock.step_wall_ms(-7_200_000);
        clock.advance(Duration::from_millis(7));
        assert_eq!(steady.now(clock.read()).steady_ms, before.steady_ms + 7);
    }
}
