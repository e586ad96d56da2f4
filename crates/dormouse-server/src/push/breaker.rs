//! The breaker of one origin: whether anything is sent to it now.
//!
//! A pure state machine: time is an argument. While it is open nothing is sent, so a dead receiver
//! costs one probe per wait and no attempts.

use std::time::Duration;

/// Failures in a row that open it.
const IN_A_ROW_MAX: u32 = 5;
/// Failures without which pushes are not disabled, however long ago the first one was.
const GIVE_UP_FAILURES_MIN: u32 = 5;
/// It also opens if half of the last so many failed.
const WINDOW: u32 = 20;

/// How long a breaker waits.
#[derive(Clone, Copy, Debug)]
pub struct BreakerTiming {
    /// The first wait; each one after a failed probe is twice as long.
    pub wait_min: Duration,
    /// The longest wait.
    pub wait_max: Duration,
    /// Pushes of a topic are disabled after so long without a success.
    pub give_up_after: Duration,
}

impl Default for BreakerTiming {
    fn default() -> BreakerTiming {
        BreakerTiming {
            wait_min: Duration::from_secs(5),
            wait_max: Duration::from_secs(600),
            give_up_after: Duration::from_secs(5 * 24 * 3_600),
        }
    }
}

/// How much is let through, as others see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Level {
    /// Everything.
    #[default]
    Closed,
    /// A probe.
    HalfOpen,
    /// Nothing.
    Open,
}

/// Whether a delivery may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    /// It may; its end has to be reported.
    Pass,
    /// Not before this instant.
    At(u64),
    /// Not before the probe that is under way since then has ended.
    AfterProbe { since_ms: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Open { until_ms: u64 },
    Probing { since_ms: u64 },
}

/// The breaker.
#[derive(Debug)]
pub(super) struct Breaker {
    timing: BreakerTiming,
    state: State,
    in_a_row: u32,
    /// The last results, the newest in bit 0; 1 = failed. And how many they are.
    window: u32,
    known: u32,
    /// Times it opened since the last success.
    opened: u32,
    /// The receiver asked for silence until then.
    held_until_ms: u64,
    failing_since_ms: Option<u64>,
    /// Failures since then.
    failures: u32,
    /// Spreads the waits of many origins and servers.
    seed: u64,
}

impl Breaker {
    pub(super) fn new(timing: BreakerTiming, seed: u64) -> Breaker {
        Breaker {
            timing,
            state: State::Closed,
            in_a_row: 0,
            window: 0,
            known: 0,
            opened: 0,
            held_until_ms: 0,
            failing_since_ms: None,
            failures: 0,
            seed,
        }
    }

    /// What `take` would say, without taking a probe.
    pub(super) fn permit(&self, now_ms: u64) -> Permit {
        if now_ms < self.held_until_ms {
            return Permit::At(self.held_until_ms);
        }
        match self.state {
            State::Closed => Permit::Pass,
            State::Open { until_ms } if now_ms < until_ms => Permit::At(until_ms),
            State::Open { .. } => Permit::Pass,
            State::Probing { since_ms } => Permit::AfterProbe { since_ms },
        }
    }

    /// Asks for a delivery. The first one after a wait is the probe.
    pub(super) fn take(&mut self, now_ms: u64) -> Permit {
        let permit = self.permit(now_ms);
        if let (Permit::Pass, State::Open { .. }) = (permit, self.state) {
            self.state = State::Probing { since_ms: now_ms };
        }
        permit
    }

    /// How many deliveries may start at the same time: while it is not closed, one.
    pub(super) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    pub(super) fn level(&self, now_ms: u64) -> Level {
        match self.state {
            State::Closed => Level::Closed,
            State::Open { until_ms } if now_ms < until_ms => Level::Open,
            State::Open { .. } | State::Probing { .. } => Level::HalfOpen,
        }
    }

    /// A delivery found that the receiver works.
    pub(super) fn succeeded(&mut self) {
        self.in_a_row = 0;
        self.forgive();
        match self.state {
            State::Closed => self.note(0),
            State::Open { .. } | State::Probing { .. } => {
                self.state = State::Closed;
                self.opened = 0;
            }
        }
    }

    /// A delivery failed.
    pub(super) fn failed(&mut self, now_ms: u64) {
        self.failing_since_ms.get_or_insert(now_ms);
        self.failures = self.failures.saturating_add(1);
        match self.state {
            State::Closed => {
                self.in_a_row += 1;
                self.note(1);
                let is_half = self.known == WINDOW && self.window.count_ones() * 2 >= WINDOW;
                if self.in_a_row >= IN_A_ROW_MAX || is_half {
                    self.open(now_ms);
                }
            }
            State::Probing { .. } => self.open(now_ms),
            // Deliveries that were under way when it opened.
            State::Open { .. } => {}
        }
    }

    /// A delivery ended without a result: the next one may be the probe.
    pub(super) fn abandoned(&mut self, now_ms: u64) {
        if matches!(self.state, State::Probing { .. }) {
            self.state = State::Open { until_ms: now_ms };
        }
    }

    /// The receiver asked for silence.
    pub(super) fn hold(&mut self, until_ms: u64) {
        self.held_until_ms = self.held_until_ms.max(until_ms);
    }

    /// Whether it has failed for so long that pushes are to be disabled.
    pub(super) fn gives_up(&self, now_ms: u64) -> bool {
        let limit_ms = as_ms(self.timing.give_up_after);
        self.failures >= GIVE_UP_FAILURES_MIN
            && self.failing_since_ms.is_some_and(|since| now_ms.saturating_sub(since) >= limit_ms)
    }

    /// An operator says that the receiver works: it is called at once, and has all its time again.
    /// Silence that the receiver asked for is kept.
    pub(super) fn reset(&mut self) {
        self.state = State::Closed;
        (self.in_a_row, self.window, self.known, self.opened) = (0, 0, 0, 0);
        self.forgive();
    }

    /// Whether nothing is lost if it is forgotten: all that it knows of is past.
    pub(super) fn is_over(&self, now_ms: u64) -> bool {
        self.permit(now_ms) == Permit::Pass
    }

    fn forgive(&mut self) {
        self.failing_since_ms = None;
        self.failures = 0;
    }

    /// Keeps a result; 1 = failed.
    fn note(&mut self, result: u32) {
        self.window = (self.window << 1 | result) & ((1 << WINDOW) - 1);
        self.known = (self.known + 1).min(WINDOW);
    }

    fn open(&mut self, now_ms: u64) {
        let (min_ms, max_ms) = (as_ms(self.timing.wait_min), as_ms(self.timing.wait_max));
        let full_ms = min_ms.saturating_mul(1 << self.opened.min(20)).min(max_ms);
        self.opened = self.opened.saturating_add(1);
        // Up to a fifth less, so that servers do not probe in step.
        let spread = mix(self.seed ^ u64::from(self.opened)) % 200;
        let wait_ms = full_ms - full_ms / 1_000 * spread;
        self.state = State::Open { until_ms: now_ms + wait_ms };
        (self.in_a_row, self.window, self.known) = (0, 0, 0);
    }
}

fn as_ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// The finaliser of splitmix64.
pub(super) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker() -> Breaker {
        Breaker::new(BreakerTiming::default(), 7)
    }

    fn wait(breaker: &Breaker, now_ms: u64) -> u64 {
        match breaker.permit(now_ms) {
            Permit::At(at_ms) => at_ms - now_ms,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_opens_after_failures_in_a_row() {
        let mut breaker = breaker();
        for now_ms in 0..4 {
            breaker.failed(now_ms);
            assert_eq!(breaker.take(now_ms), Permit::Pass);
        }
        breaker.succeeded();
        for now_ms in 0..5 {
            assert_eq!(breaker.take(now_ms), Permit::Pass);
            breaker.failed(now_ms);
        }
        assert!((4_000..=5_000).contains(&wait(&breaker, 4)));
        assert_eq!(breaker.level(4), Level::Open);
    }

    #[test]
    fn it_opens_if_half_of_the_last_results_failed() {
        let mut breaker = breaker();
        for now_ms in 0..100 {
            breaker.succeeded();
            breaker.succeeded();
            breaker.failed(now_ms);
        }
        assert!(breaker.is_closed(), "a third is not half");
        let mut results = 0;
        while breaker.is_closed() {
            results += 1;
            match results % 2 {
                0 => breaker.succeeded(),
                _ => breaker.failed(0),
            }
        }
        assert!(results <= 20, "{results}");
    }

    #[test]
    fn one_probe_goes_out_and_waits_double() {
        let mut breaker = breaker();
        (0..5).for_each(|_| breaker.failed(0));
        let mut now_ms = 0;
        for full_ms in [5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 600_000, 600_000] {
            let wait_ms = wait(&breaker, now_ms);
            assert!((full_ms * 4 / 5..=full_ms).contains(&wait_ms), "{wait_ms} of {full_ms}");
            now_ms += wait_ms;
            assert_eq!(breaker.level(now_ms), Level::HalfOpen);
            assert_eq!(breaker.take(now_ms), Permit::Pass);
            assert_eq!(breaker.take(now_ms), Permit::AfterProbe { since_ms: now_ms });
            breaker.failed(now_ms);
        }
        now_ms += wait(&breaker, now_ms);
        assert_eq!(breaker.take(now_ms), Permit::Pass);
        breaker.succeeded();
        assert!(breaker.is_closed());
        (0..5).for_each(|_| breaker.failed(now_ms));
        assert!(wait(&breaker, now_ms) <= 5_000, "a success forgets how often it opened");
    }

    #[test]
    fn a_probe_without_a_result_makes_room_for_another() {
        let mut breaker = breaker();
        (0..5).for_each(|_| breaker.failed(0));
        assert_eq!(breaker.take(5_000), Permit::Pass);
        breaker.abandoned(5_001);
        assert_eq!(breaker.take(5_001), Permit::Pass);
        assert_eq!(breaker.take(5_002), Permit::AfterProbe { since_ms: 5_001 });
    }

    #[test]
    fn late_results_of_earlier_deliveries_do_not_prolong_a_wait() {
        let mut breaker = breaker();
        (0..5).for_each(|_| breaker.failed(0));
        let wait_ms = wait(&breaker, 0);
        (0..50).for_each(|_| breaker.failed(1_000));
        assert_eq!(wait(&breaker, 0), wait_ms);
        breaker.abandoned(1_000);
        assert_eq!(wait(&breaker, 0), wait_ms);
    }

    #[test]
    fn silence_that_was_asked_for_is_kept_even_after_a_success() {
        let mut breaker = breaker();
        breaker.hold(9_000);
        breaker.hold(3_000);
        breaker.succeeded();
        assert_eq!(breaker.take(8_999), Permit::At(9_000));
        assert_eq!(breaker.take(9_000), Permit::Pass);
    }

    #[test]
    fn it_gives_up_after_days_without_a_success() {
        let mut breaker = breaker();
        let day_ms = 24 * 3_600 * 1_000;
        assert!(!breaker.gives_up(100 * day_ms));
        breaker.failed(day_ms);
        (0..3).for_each(|_| breaker.failed(5 * day_ms));
        assert!(!breaker.gives_up(6 * day_ms), "four failures are no proof");
        breaker.failed(5 * day_ms);
        assert!(!breaker.gives_up(6 * day_ms - 1));
        assert!(breaker.gives_up(6 * day_ms));
        breaker.succeeded();
        assert!(!breaker.gives_up(100 * day_ms));
    }

    #[test]
    fn after_a_reset_it_has_all_its_time_again() {
        let mut breaker = breaker();
        let day_ms = 24 * 3_600 * 1_000;
        (0..9).for_each(|_| breaker.failed(0));
        breaker.hold(7 * day_ms + 1);
        assert!(breaker.gives_up(7 * day_ms));
        breaker.reset();
        assert!(breaker.is_closed());
        assert_eq!(breaker.take(7 * day_ms), Permit::At(7 * day_ms + 1));
        breaker.failed(7 * day_ms);
        assert!(!breaker.gives_up(7 * day_ms));
        (0..4).for_each(|_| breaker.failed(7 * day_ms));
        assert!(!breaker.gives_up(12 * day_ms - 1) && breaker.gives_up(12 * day_ms));
        assert!((4_000..=5_000).contains(&wait(&breaker, 7 * day_ms + 2)), "waits are short again");
    }
}
