//! Sessions and withdrawals. Redis knows nothing of them: they concern this server alone.

use std::rc::Rc;

use dormouse_core::backend::{Answer, Ticket};
use dormouse_core::command::Reply;
use dormouse_core::op::SessionId;
use dormouse_core::refusal::session_closed;

use super::lease;
use crate::dispatch::Dispatcher;
use crate::partition::SubmissionNo;

pub(super) fn open(dispatcher: &Dispatcher) -> Reply {
    Reply::Session(dispatcher.sessions.borrow_mut().open())
}

/// Answers the session's blocking reserves with an empty reply, and releases its leases.
pub(super) async fn close(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    session: SessionId,
) -> Answer {
    let closed = dispatcher.sessions.borrow_mut().close(session);
    let closed = closed.ok_or_else(|| session_closed(session))?;
    for waiter in closed.waiters.values() {
        waiter.finish();
    }
    let mut tokens: Vec<_> = closed.tokens().collect();
    tokens.sort_unstable();
    for tokens in tokens.chunks(dormouse_core::limits::BATCH_MAX) {
        // Leases that have ended are left alone; if this fails, the others expire.
        lease::give_back(dispatcher, submission, tokens).await?;
    }
    Ok(Reply::Done)
}

/// An unknown ticket does not wait, or not any more: its answer is on its way.
pub(super) fn withdraw(dispatcher: &Dispatcher, ticket: Ticket) -> Reply {
    if let Some(waiter) = dispatcher.waiting.borrow().get(&ticket) {
        waiter.finish();
    }
    Reply::Done
}
