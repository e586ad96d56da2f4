//! The thread that opens connections when they are missing: it may block.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::limits::STABLE_MS_MIN;
use crate::pause::Pause;
use crate::shared::Shared;
use crate::state::{Need, Phase, Todo};

/// Runs until the client is closed.
pub(crate) fn run(shared: &Shared) {
    let mut pause = Pause::new();
    let mut opened_at: Option<Instant> = None;
    while let Some((need, preferred)) = next_need(shared) {
        let is_unstable = need == Need::Commands
            && opened_at.is_some_and(|at| at.elapsed() < Duration::from_millis(STABLE_MS_MIN));
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
        if !is_open {
            if !sleep(shared, pause.next()) {
                return;
            }
        } else if need == Need::Commands {
            opened_at = Some(now);
        }
        if is_open && !is_unstable {
            pause.reset();
        }
    }
}

/// Waits until a connection is missing, and tells which URL to begin with; `None` = the end.
fn next_need(shared: &Shared) -> Option<(Need, usize)> {
    let mut state = shared.lock();
    loop {
        if state.phase != Phase::Open {
            return None;
        }
        if let Some(need) = state.need() {
            return Some((need, state.preferred));
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
