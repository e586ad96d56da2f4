//! The rules over a timeline: commands and time in, facts and answers out.

use crate::backend::{Answer, Ticket};
use crate::fact::Fact;

/// When an answer may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At once: reserve and extend, whose loss in a crash costs only another delivery.
    Prompt,
    /// After the facts of this step, and all before, are durable.
    Durable,
}

/// What steps and ticks produce; the driver empties it, so its buffers are reused.
#[derive(Debug, Default)]
pub struct Output {
    /// To be made durable, in this order.
    pub facts: Vec<Fact>,
    /// To be delivered.
    pub answers: Vec<(Ticket, Answer, When)>,
}
