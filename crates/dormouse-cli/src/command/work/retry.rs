//! Retries while the server cannot be reached, reported once and not each time.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::exit::Failure;
use crate::output;

/// Whether the server answers.
#[derive(Default)]
pub(super) struct ServerState {
    is_down: AtomicBool,
}

impl ServerState {
    /// Reports the first failure in a row.
    pub(super) fn is_down(&self, failure: &Failure) {
        if !self.is_down.swap(true, Ordering::Relaxed) {
            let text = format!("{}; trying again until it works", failure.text());
            output::say_at(tracing::Level::WARN, &text);
        }
    }

    /// Reports the first answer after failures.
    pub(super) fn is_up(&self) {
        if self.is_down.swap(false, Ordering::Relaxed) {
            output::say("the server answers again");
        }
    }
}

const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Growing pauses between attempts.
pub(super) struct Pause {
    next: Duration,
}

impl Default for Pause {
    fn default() -> Pause {
        Pause { next: PAUSE_FIRST }
    }
}

impl Pause {
    /// Sleeps until the pause is over or `until` is ready.
    pub(super) async fn sleep(&mut self, until: impl Future<Output = ()>) {
        tokio::select! {
            () = tokio::time::sleep(self.next) => {}
            () = until => {}
        }
        self.next = (self.next * 2).min(PAUSE_MAX);
    }

    pub(super) fn reset(&mut self) {
        *self = Pause::default();
    }
}
