//! Follows each job through the answers about it.

use dormouse_core::backend::{Answer, Ticket};
use dormouse_core::command::Command;
use dormouse_core::time::Now;

/// See the module.
#[derive(Debug, Default)]
pub struct Checker {}

impl Checker {
    /// A command was given while this batch was open.
    pub fn asked(&mut self, _ticket: Ticket, _command: &Command, _batch: u64) {}

    /// It was answered.
    pub fn answered(
        &mut self,
        _now: Now,
        _ticket: Ticket,
        _answer: &Answer,
        _batch: u64,
    ) -> Result<(), String> {
        Ok(())
    }

    /// A crash: what later batches said never happened.
    pub fn lost_after(&mut self, _batch: u64) {}

    /// A start.
    pub fn restarted(&mut self, _now: Now, _batch: u64) {}
}
