//! Why a node takes no work, in its own words: for answers, and for one line in the log.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::url::Address;
use crate::clock;

/// Shorter troubles are not logged: a slot that moves, a failover that others have noticed.
const LOGGED_AFTER: Duration = Duration::from_secs(1);
/// Calls that are refused come again sooner: after this long none is left that is.
const REPEATED_WITHIN: Duration = Duration::from_secs(1);

struct Refusal {
    /// `None` = it says nothing.
    reason: Option<String>,
    since: Instant,
    last_at: Instant,
    is_logged: bool,
}

/// The refusal that a node repeats, if it does.
#[derive(Default)]
pub(super) struct Trouble(Mutex<Option<Refusal>>);

impl Trouble {
    /// The node refused a call that will be sent again.
    pub(super) fn note(&self, address: &Address, reason: String) {
        self.add(address, Some(reason), clock::instant());
    }

    /// The node has not answered a call since then.
    pub(super) fn note_silence(&self, address: &Address, since: Instant) {
        if since.elapsed() >= LOGGED_AFTER {
            self.add(address, None, since);
        }
    }

    fn add(&self, address: &Address, reason: Option<String>, since: Instant) {
        let mut refusal = self.lock();
        let last_at = clock::instant();
        let new = Refusal { reason: None, since, last_at, is_logged: false };
        let refusal = refusal.get_or_insert(new);
        refusal.last_at = last_at;
        refusal.reason = reason.or(refusal.reason.take());
        if !refusal.is_logged && refusal.since.elapsed() >= LOGGED_AFTER {
            refusal.is_logged = true;
            let reason = refusal.reason.as_deref().unwrap_or("it does not answer");
            tracing::warn!("redis: {address} takes no work: {reason}");
        }
    }

    /// The node answers other commands: it is no longer known to refuse calls if none was repeated.
    pub(super) fn clear_if_over(&self, address: &Address) {
        let is_over = |refusal: &mut Refusal| refusal.last_at.elapsed() > REPEATED_WITHIN;
        let ended = self.lock().take_if(is_over);
        log_end(address, ended);
    }

    /// The node executed a call.
    pub(super) fn clear(&self, address: &Address) {
        let ended = self.lock().take();
        log_end(address, ended);
    }

    pub(super) fn reason(&self) -> Option<String> {
        self.lock().as_ref().and_then(|refusal| refusal.reason.clone())
    }

    /// Whether it has been so for a while.
    pub(super) fn is_lasting(&self) -> bool {
        self.lock().as_ref().is_some_and(|refusal| refusal.is_logged)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Refusal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log_end(address: &Address, ended: Option<Refusal>) {
    if ended.is_some_and(|refusal| refusal.is_logged) {
        tracing::info!("redis: {address} takes work again");
    }
}
