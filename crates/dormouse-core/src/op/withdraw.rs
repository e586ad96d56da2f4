//! withdraw: answer a waiting reserve or lock now, with nothing.

use crate::backend::{Answer, Ticket};
use crate::command::Reply;
use crate::machine::{Machine, Output};
use crate::timeline::Timeline;

impl<T: Timeline> Machine<T> {
    /// A ticket nobody waits with is as good as withdrawn: its answer is on its way.
    pub(crate) fn withdraw(&mut self, ticket: Ticket, out: &mut Output) -> Answer {
        if let Some(waiter) = self.waiters.by_ticket(ticket) {
            self.answer_with_nothing(waiter, out);
        }
        Ok(Reply::Done)
    }
}
