//! The backend under test, its clock, and what can be done to both.

use std::sync::Arc;

use dormouse_core::backend::{Answer, Backend};
use dormouse_core::command::Command;

use super::client::{Client, Pending};

/// Makes a backend and has power over its time and its life.
pub trait Host: Send {
    /// The backend, as it runs now.
    fn backend(&self) -> Arc<dyn Backend>;

    /// The backend's wall clock, ms since the epoch.
    fn now_ms(&self) -> u64;

    /// Time passes; the backend learns of it before any later command.
    fn advance(&self, ms: u64);

    /// Sets the calendar although no time passes. False = this backend has one clock only.
    fn step_wall_ms(&self, by_ms: i64) -> bool;

    /// Ends the backend and, after this time, starts it again on its data.
    /// False = it stores nothing.
    fn reopen(&mut self, _off_ms: u64) -> bool {
        false
    }

    /// The same with a restart of the computer: only its calendar, moved by so much, tells how
    /// long it was off.
    fn reboot(&mut self, _wall_ms: i64) -> bool {
        false
    }

    /// Moves what rests to where it rests for long, if there is such a place.
    fn churn(&mut self) {}

    /// Whether a case may be interrupted by a restart at the points it allows.
    fn reopens_often(&self) -> bool {
        false
    }

    /// Whether hundreds of MiB of bodies cost nothing, because they are never copied.
    fn bytes_are_cheap(&self) -> bool {
        false
    }
}

/// A fresh backend in the hands of one case.
pub struct Subject {
    host: Box<dyn Host>,
    client: Client,
}

impl Subject {
    /// A subject on this host.
    pub fn new(host: impl Host + 'static) -> Subject {
        let client = Client::new(host.backend());
        Subject { host: Box::new(host), client }
    }

    /// The backend's wall clock, ms since the epoch.
    pub fn now(&self) -> u64 {
        self.host.now_ms()
    }

    /// Time passes.
    pub fn advance(&self, ms: u64) {
        self.host.advance(ms);
    }

    /// Sets the calendar. False = there is no calendar apart from the clock.
    pub fn step_wall_ms(&self, by_ms: i64) -> bool {
        self.host.step_wall_ms(by_ms)
    }

    /// Ends the backend and starts it again. False = it would forget everything, so it goes on.
    pub fn reopen(&mut self) -> bool {
        self.reopen_after(0)
    }

    /// The same, after this time.
    pub fn reopen_after(&mut self, off_ms: u64) -> bool {
        let reopened = self.host.reopen(off_ms);
        self.client = Client::new(self.host.backend());
        reopened
    }

    /// See [`Host::reboot`].
    pub fn reboot(&mut self, wall_ms: i64) -> bool {
        let reopened = self.host.reboot(wall_ms);
        self.client = Client::new(self.host.backend());
        reopened
    }

    /// A point at which what rests may be moved about and the backend restarted without a
    /// difference to the case: nobody waits, no session is open, no lease has begun to pass.
    pub fn maybe_reopen(&mut self) {
        self.host.churn();
        if self.host.reopens_often() {
            self.reopen();
        }
    }

    /// Moves what rests to where it rests for long.
    pub fn churn(&mut self) {
        self.host.churn();
    }

    /// See [`Host::bytes_are_cheap`].
    pub fn bytes_are_cheap(&self) -> bool {
        self.host.bytes_are_cheap()
    }

    /// Hands one command over, without waiting for its answer.
    pub fn send(&self, command: Command) -> Pending {
        self.client.send(command)
    }

    /// Hands commands over as one batch and waits for all answers.
    pub fn batch(&self, commands: Vec<Command>) -> Vec<Answer> {
        self.client.send_all(commands).into_iter().map(Pending::wait).collect()
    }

    /// Hands one command over and waits for its answer.
    pub fn ask(&self, command: Command) -> Answer {
        self.client.ask(command)
    }
}
