//! The engine thread: timers, long work, and the end of everything.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dormouse_core::error::{Error, Fatal};

use super::control::{AfterEngineTurn, Control};
use super::inbox::{Rest, TurnOwner};
use super::worker::panicked;

/// Runs until closed, or until the first failure; then every request gets the reason.
pub(super) fn run(control: &Control) -> Result<(), Fatal> {
    let mut ended = turns(control);
    let Some(mut state) = control.remove() else { return ended };
    let failure = || control.failure().cloned().map_or(Ok(()), Err);
    ended = ended.and(failure());
    if ended.is_ok() {
        let closed = catch_unwind(AssertUnwindSafe(|| state.close(&control.outbox)));
        // A failure of another thread meanwhile is the reason, if there was one.
        ended = closed.unwrap_or_else(|_| Err(panicked())).and(failure());
    }
    let reason = match &ended {
        Ok(()) => Error::unavailable("the queue is closed; open it again to go on"),
        Err(fatal) => fatal.clone().into(),
    };
    let queued = control.inbox.stop(reason.clone());
    let end = AssertUnwindSafe(move || {
        state.fail(queued, &reason);
        // Its threads end here; they may still have answers.
        drop(state);
    });
    if catch_unwind(end).is_err() {
        ended = ended.and(Err(panicked()));
    }
    // Answers in the outbox tell of changes that have happened.
    control.outbox.drain();
    ended
}

fn turns(control: &Control) -> Result<(), Fatal> {
    loop {
        let after = control.engine_turn()?;
        control.deliver();
        match after {
            AfterEngineTurn::Close => return Ok(()),
            AfterEngineTurn::Sleep { wake, progress_only } => {
                if control.inbox.rest(TurnOwner::EngineThread, progress_only) == Rest::Nothing {
                    control.inbox.sleep(wake.left());
                }
            }
        }
    }
}
