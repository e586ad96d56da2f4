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
