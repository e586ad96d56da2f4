//! withdraw: answer a waiting reserve or lock now, with nothing.

use crate::backend::Ticket;
use crate::command::{Command, Reply, operation};
use crate::machine::{Machine, Output, Rule};
use crate::timeline::Timeline;

/// Answer the waiting reserve or lock that was submitted with this ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Withdraw(pub Ticket);

operation! {
    Withdraw => (),
        Withdraw(ticket) => Command::Withdraw(ticket), Reply::Done => Ok(());
}

impl<T: Timeline> Machine<T> {
    /// An unknown ticket counts as withdrawn: its answer is on its way.
    pub(crate) fn withdraw(&mut self, ticket: Ticket, out: &mut Output) -> Rule<Reply> {
        if let Some(waiter) = self.waiters.by_ticket(ticket) {
            self.answer_with_nothing(waiter, out);
        }
        Ok(Reply::Done)
    }
}
