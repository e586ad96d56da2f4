//! Delays between attempts.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

const FIRST_MS: u64 = 10;
const LONGEST_MS: u64 = 200;

/// Growing delays, each with a random part: callers that failed together retry apart.
#[derive(Debug)]
pub(super) struct RetryDelay {
    next_ms: u64,
}

impl RetryDelay {
    pub(super) fn new() -> RetryDelay {
        RetryDelay { next_ms: FIRST_MS }
    }

    /// The next delay: between half of its length and all of it.
    pub(super) fn next(&mut self) -> Duration {
        let whole_ms = self.next_ms;
        self.next_ms = (whole_ms * 2).min(LONGEST_MS);
        Duration::from_millis(whole_ms / 2 + random() % (whole_ms / 2 + 1))
    }

    /// After a success the delays start from the shortest again.
    pub(super) fn reset(&mut self) {
        self.next_ms = FIRST_MS;
    }
}

/// The standard hasher's keys are random enough, and need no crate.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_longest_and_start_anew() {
        let mut delay = RetryDelay::new();
        let first = delay.next();
        assert!((5..=10).contains(&first.as_millis()), "{first:?}");
        for _ in 0..10 {
            delay.next();
        }
        let late = delay.next();
        assert!((100..=200).contains(&late.as_millis()), "{late:?}");
        delay.reset();
        assert!(delay.next().as_millis() <= 10);
    }
}
