//! Tokens that were refused: each address may guess only so fast, and the log says who guesses.

#![allow(clippy::disallowed_methods, reason = "slows clients that guess tokens")]

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::{
    REFUSAL_DELAY_MS_MAX, REFUSAL_MS, REFUSALS_ADDRESSES, REFUSALS_AT_ONCE, REFUSALS_LOG_MS,
};
use crate::metrics::ProtocolKind;
use crate::visitor::{Address, Visitor};

/// What is remembered of refused tokens. Addresses that fall into the same slot share it, so that
/// no number of addresses takes more memory.
pub(super) struct Refusals {
    hasher: RandomState,
    begun: Instant,
    state: Mutex<State>,
}

struct State {
    slots: Vec<Slot>,
    /// When a line was logged, of whatever address.
    logged_ms: Option<u64>,
}

/// The refusals of the addresses in one slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// When the refusals so far have been paid for, each with `REFUSAL_MS`.
    paid_ms: u64,
    /// When a line was logged.
    logged_ms: Option<u64>,
    /// Refusals since then.
    unlogged: u64,
}

impl Slot {
    /// Notes a refusal; returns how long its answer has to wait.
    fn note(&mut self, now_ms: u64) -> u64 {
        let at_once_ms = REFUSAL_MS * REFUSALS_AT_ONCE;
        // Who was good for a while has `REFUSALS_AT_ONCE` of them free.
        let paid_ms = self.paid_ms.max(now_ms) + REFUSAL_MS;
        let delay_ms = (paid_ms - now_ms).saturating_sub(at_once_ms).min(REFUSAL_DELAY_MS_MAX);
        self.paid_ms = paid_ms.min(now_ms + at_once_ms + REFUSAL_DELAY_MS_MAX);
        self.unlogged += 1;
        delay_ms
    }
}

impl State {
    /// The number of refusals that a line must tell now; `None` = it is too early for one.
    fn due_for_log(&mut self, index: usize, now_ms: u64) -> Option<u64> {
        let slot = self.slots.get_mut(index)?;
        let is_past = |then_ms: Option<u64>, ms: u64| then_ms.is_none_or(|at| now_ms >= at + ms);
        // One line a second at most, however many addresses there are.
        if !is_past(slot.logged_ms, REFUSALS_LOG_MS) || !is_past(self.logged_ms, 1_000) {
            return None;
        }
        (slot.logged_ms, self.logged_ms) = (Some(now_ms), Some(now_ms));
        Some(std::mem::take(&mut slot.unlogged))
    }
}

impl Refusals {
    pub(super) fn new() -> Refusals {
        let slots = vec![Slot::default(); REFUSALS_ADDRESSES];
        let state = Mutex::new(State { slots, logged_ms: None });
        Refusals { hasher: RandomState::new(), begun: Instant::now(), state }
    }

    /// Notes and logs that a client's token was refused; returns how long its answer has to wait.
    pub(super) fn note(&self, client: &Visitor) -> Duration {
        let now_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let index = self.slot_of(&client.address);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let delay_ms = state.slots[index].note(now_ms);
        let due = state.due_for_log(index, now_ms);
        drop(state);
        if let Some(count) = due {
            log(client.address, client.protocol, count);
        }
        Duration::from_millis(delay_ms)
    }

    fn slot_of(&self, address: &Address) -> usize {
        // The remainder is below `REFUSALS_ADDRESSES`, so it fits.
        (self.hasher.hash_one(address) % REFUSALS_ADDRESSES as u64) as usize
    }
}

fn log(address: Address, protocol: ProtocolKind, count: u64) {
    let protocol = protocol.as_str();
    tracing::warn!("{address} was refused: it sent an unknown token, {count} times ({protocol})");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_guesses_fast_waits() {
        let mut slot = Slot::default();
        // A client that was configured wrongly is not slowed, nor one that comes now and then.
        for _ in 0..REFUSALS_AT_ONCE {
            assert_eq!(slot.note(1_000), 0);
        }
        assert_eq!(slot.note(1_000), REFUSAL_MS);
        assert_eq!(slot.note(1_000), 2 * REFUSAL_MS);
        assert_eq!(slot.note(1_000 + 3 * REFUSAL_MS), 0);
        // It waits no longer than the limit, however many guesses there were.
        let delays: Vec<u64> = (0..10_000).map(|_| slot.note(5_000)).collect();
        assert_eq!(delays.last(), Some(&REFUSAL_DELAY_MS_MAX));
        assert!(delays.is_sorted());
        let later_ms = 5_000 + REFUSAL_MS * REFUSALS_AT_ONCE + REFUSAL_DELAY_MS_MAX;
        assert_eq!(slot.note(later_ms), 0);
    }

    #[test]
    fn the_log_is_told_now_and_then() {
        let mut state = State { slots: vec![Slot::default(); 2], logged_ms: None };
        let mut check = |index: usize, now_ms, told| {
            state.slots[index].note(now_ms);
            assert_eq!(state.due_for_log(index, now_ms), told, "{index} at {now_ms}");
        };
        check(0, 0, Some(1));
        check(0, 10, None);
        check(1, 10, None);
        check(1, 1_000, Some(2));
        check(0, 2_000, None);
        check(0, REFUSALS_LOG_MS, Some(3));
    }
}
