//! Sessions and withdrawals. Redis knows nothing of them: they concern this server alone.

use dormouse_core::backend::{Answer, Ticket};
use dormouse_core::command::Reply;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::SessionId;
use dormouse_core::refusal::session_closed;

use super::Fanout;

impl Fanout<'_> {
    pub(super) fn open_session(self) -> Reply {
        Reply::Session(self.dispatcher.sessions.borrow_mut().open())
    }

    /// Answers the session's blocking reserves with an empty reply, and releases its leases.
    pub(super) async fn close_session(self, session: SessionId) -> Answer {
        let closed = self.dispatcher.sessions.borrow_mut().close(session);
        let closed = closed.ok_or_else(|| session_closed(session))?;
        for waiter in closed.waiters.values() {
            waiter.finish();
        }
        let mut tokens: Vec<_> = closed.tokens().collect();
        tokens.sort_unstable();
        for tokens in tokens.chunks(BATCH_MAX) {
            // Leases that have ended are left alone; if this fails, the others expire.
            self.give_back(tokens).await?;
        }
        Ok(Reply::Done)
    }

    /// A request with an unknown ticket does not wait, or not any more: its answer is on its way.
    pub(super) fn withdraw(self, ticket: Ticket) -> Reply {
        if let Some(wait) = self.dispatcher.waiting.borrow().get(&ticket) {
            wait.withdraw();
        }
        Reply::Done
    }
}
