//! The thread that opens connections when they are missing: it may block.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::pause::Pause;
use crate::shared::Shared;
use crate::state::{Need, Phase, Todo};

/// Runs until the client is closed.
pub(crate) fn run(shared: &Shared) {
    let mut pause = Pause::new();
    while let Some(Missing { need, preferred, is_unstable }) = next_missing(shared) {
        // A server that takes connections and ends them at once gets no storm of them.
        if is_unstable && !sleep(shared, pause.next()) {
            return;
        }
        let is_wanted = || shared.lock().phase == Phase::Open;
        let opened = shared.connector.open_any(preferred, &is_wanted);
        let (mut todo, now) = (Todo::default(), Instant::now());
        let mut state = shared.lock();
        let is_open = opened.is_ok();
        match opened {
            Ok((stream, server)) => state.install(need, stream, server, now, &mut todo),
            Err(error) => state.connect_failed(error, &mut todo),
        }
        drop(state);
        shared.perform(todo);
        if !is_open && !sleep(shared, pause.next()) {
            return;
        }
        if is_open && !is_unstable {
            pause.reset();
        }
    }
}

/// A connection to open.
struct Missing {
    need: Need,
    /// The URL to begin with.
    preferred: usize,
    /// The last ones broke at once.
    is_unstable: bool,
}

/// Waits until a connection is missing; `None` = the end.
fn next_missing(shared: &Shared) -> Option<Missing> {
    let mut state = shared.lock();
    loop {
        if state.phase != Phase::Open {
            return None;
        }
        if let Some(need) = state.need() {
            let is_unstable = state.is_unstable(Instant::now());
            return Some(Missing { need, preferred: state.preferred, is_unstable });
        }
        state = shared.connect.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Waits for so long; false if the client is closed meanwhile.
fn sleep(shared: &Shared, pause: Duration) -> bool {
    let state = shared.lock();
    let waited =
        shared.connect.wait_timeout_while(state, pause, |state| state.phase == Phase::Open);
    let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
    state.phase == Phase::Open
}
