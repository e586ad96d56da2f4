//! Whether enough replicas of a node confirm changes: for the log, readiness and a meter.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::url::Address;
use crate::clock;

/// A replica that comes and goes is logged no more often.
const LOGGED_EVERY: Duration = Duration::from_secs(10);

#[derive(Default)]
struct State {
    wanted: u32,
    missing: u64,
    /// Too few were connected since a change was last confirmed.
    was_absent: bool,
    is_logged: bool,
    logged_at: Option<Instant>,
}

/// What the last WAIT at a node came to, or how many are connected if that was seen later.
#[derive(Default)]
pub(super) struct ReplicaWatch(Mutex<State>);

impl ReplicaWatch {
    /// So many of the replicas that are wanted confirmed in time.
    pub(super) fn note(&self, address: &Address, confirmed: u64, wanted: u32) {
        let mut state = self.lock();
        state.wanted = wanted;
        state.missing = u64::from(wanted).saturating_sub(confirmed);
        state.was_absent &= state.missing > 0;
        let now = clock::instant();
        let may_log = state.logged_at.is_none_or(|at| now.duration_since(at) >= LOGGED_EVERY);
        if state.missing > 0 && !state.is_logged && may_log {
            (state.is_logged, state.logged_at) = (true, Some(now));
            tracing::warn!(
                "redis: {confirmed} of {wanted} replicas of {address} confirm changes: these are \
                 answered `unconfirmed`"
            );
        } else if state.missing == 0 && std::mem::take(&mut state.is_logged) {
            tracing::info!(
                "redis: {confirmed} of {wanted} replicas of {address} confirm changes again"
            );
        }
    }

    /// So many of them are connected. If none was away, one that did not confirm the last change in
    /// time is too slow: that it is connected does not tell that it confirms the next one.
    pub(super) fn note_connected(&self, address: &Address, connected: u64) {
        let mut state = self.lock();
        let wanted = state.wanted;
        let is_absent = connected < u64::from(wanted);
        if is_absent || state.was_absent || state.missing == 0 {
            state.was_absent = is_absent;
            drop(state);
            self.note(address, connected, wanted);
        }
    }

    /// How many replicas changes wait for; 0 = no change has waited yet.
    pub(super) fn wanted(&self) -> u32 {
        self.lock().wanted
    }

    pub(super) fn missing(&self) -> u64 {
        self.lock().missing
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
