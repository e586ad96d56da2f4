//! Why a node takes no work, in its own words: for answers, and for one line in the log.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::url::Address;
use crate::clock;

/// Shorter troubles are not logged: a slot that moves, a failover that others have noticed.
const LOGGED_AFTER: Duration = Duration::from_secs(1);

struct Refusal {
    reason: String,
    since: Instant,
    is_logged: bool,
}

/// The refusal that a node repeats, if it does.
#[derive(Default)]
pub(super) struct Trouble(Mutex<Option<Refusal>>);

impl Trouble {
    /// The node refused a call that will be sent again.
    pub(super) fn note(&self, address: &Address, reason: String) {
        let mut refusal = self.lock();
        let since = clock::instant();
        let refusal =
            refusal.get_or_insert(Refusal { reason: String::new(), since, is_logged: false });
        refusal.reason = reason;
        if !refusal.is_logged && since.duration_since(refusal.since) >= LOGGED_AFTER {
            refusal.is_logged = true;
            tracing::warn!("redis: {address} takes no work: {}", refusal.reason);
        }
    }

    /// The node executed a call.
    pub(super) fn clear(&self, address: &Address) {
        let ended = self.lock().take();
        if ended.is_some_and(|refusal| refusal.is_logged) {
            tracing::info!("redis: {address} takes work again");
        }
    }

    pub(super) fn reason(&self) -> Option<String> {
        self.lock().as_ref().map(|refusal| refusal.reason.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Refusal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
