//! What was read again while the server runs, and whether it could be used.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A part of the configuration that can be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// The access tokens.
    Tokens,
    /// The certificate and its key.
    Certificate,
}

/// Counts of successes and failures. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Reloads(Arc<[[AtomicU64; 2]; 2]>);

impl Reloads {
    /// Counts an attempt.
    pub fn note(&self, part: Reloaded, is_ok: bool) {
        self.0[part as usize][usize::from(is_ok)].fetch_add(1, Relaxed);
    }

    /// Part, result and number of attempts.
    pub(crate) fn counts(&self) -> Vec<(&'static str, &'static str, u64)> {
        let parts = [(Reloaded::Tokens, "tokens"), (Reloaded::Certificate, "certificate")];
        let of = |(part, name): (Reloaded, &'static str)| {
            let count = move |is_ok: usize| self.0[part as usize][is_ok].load(Relaxed);
            [(name, "ok", count(1)), (name, "failed", count(0))]
        };
        parts.into_iter().flat_map(of).collect()
    }
}
