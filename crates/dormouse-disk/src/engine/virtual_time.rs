//! Moving the virtual clock of an engine: everything that comes due in between does, in order.

use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dormouse_core::backend::{Answer, Backend as _, Request, Sink, Ticket};
use dormouse_core::command::Command;
use dormouse_core::error::Error;
use dormouse_core::op::Stats;

use super::Engine;
use crate::clock::VirtualClock;

/// How often the rules may want another turn at the same instant before time goes on regardless:
/// bounded work per turn, so a purge or a great many leases take several.
const TURNS_MAX: usize = 100_000;

/// Receives the answer to a barrier.
struct Passed(Mutex<mpsc::Sender<()>>);

impl Sink for Passed {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        answers.clear();
        // Whoever waited may be gone.
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).send(());
    }
}

impl Engine {
    /// Moves the clock of this engine, from one instant at which something happens to the next: a
    /// lease that runs out, a job that a waiting consumer gets, a wait that is over. Returns when
    /// all of it has happened.
    ///
    /// What clients do about it happens at the time that is reached by then.
    pub fn advance(&self, clock: &VirtualClock, by: Duration) -> Result<(), Error> {
        let mut left = by;
        loop {
            let wake = self.settle()?.map_or(left, |ms| Duration::from_millis(ms.max(1)).min(left));
            if left.is_zero() {
                return Ok(());
            }
            clock.advance(wake);
            left = left.saturating_sub(wake);
        }
    }

    /// Lets the engine do all that is to be done at this instant. Returns how long until the next.
    fn settle(&self) -> Result<Option<u64>, Error> {
        for _ in 0..TURNS_MAX {
            self.barrier()?;
            match self.shared.control.next_wake_ms() {
                Some(0) => {}
                wake_ms => return Ok(wake_ms),
            }
        }
        Ok(Some(1))
    }

    /// Returns when the engine has taken a turn that began after this call.
    fn barrier(&self) -> Result<(), Error> {
        let (sender, passed) = mpsc::channel();
        let request = Request::new(Ticket(0), Command::Stats(Stats { topic: None }));
        self.submit(vec![request], Arc::new(Passed(Mutex::new(sender))))?;
        passed.recv().map_err(|_| Error::unavailable("the engine has stopped"))
    }
}
