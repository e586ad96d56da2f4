//! Pauses between rounds of connecting.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use crate::limits::{RECONNECT_MS_MAX, RECONNECT_MS_MIN};

/// Growing pauses, each with a random part: clients that lost one server come back apart.
#[derive(Debug)]
pub(crate) struct Pause {
    next_ms: u64,
}

impl Pause {
    pub(crate) fn new() -> Pause {
        Pause { next_ms: RECONNECT_MS_MIN }
    }

    /// The next pause: between half of its length and all of it.
    pub(crate) fn next(&mut self) -> Duration {
        let whole_ms = self.next_ms;
        self.next_ms = (whole_ms * 2).min(RECONNECT_MS_MAX);
        // The standard hasher's keys are random enough, and need no crate.
        let random = RandomState::new().build_hasher().finish();
        Duration::from_millis(whole_ms / 2 + random % (whole_ms / 2 + 1))
    }

    /// After a success the pauses start from the shortest again.
    pub(crate) fn reset(&mut self) {
        self.next_ms = RECONNECT_MS_MIN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_start_anew() {
        let mut pause = Pause::new();
        let within = |pause: Duration, longest_ms: u64| {
            let ms = u64::try_from(pause.as_millis()).unwrap();
            assert!((longest_ms / 2..=longest_ms).contains(&ms), "{ms} of {longest_ms}");
        };
        within(pause.next(), RECONNECT_MS_MIN);
        within(pause.next(), 2 * RECONNECT_MS_MIN);
        for _ in 0..10 {
            pause.next();
        }
        within(pause.next(), RECONNECT_MS_MAX);
        pause.reset();
        within(pause.next(), RECONNECT_MS_MIN);
    }
}
