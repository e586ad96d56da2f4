//! Sessions and withdrawals: what this server alone knows of.

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

/// Its waiting reserves are answered with nothing, its leases released unspent.
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
        // Those that ended or ran out before are left alone, the rest runs out at worst.
        lease::give_back(dispatcher, submission, tokens).await?;
    }
    Ok(Reply::Done)
}

/// A ticket nobody waits with is as good as withdrawn: its answer is on its way.
pub(super) fn withdraw(dispatcher: &Dispatcher, ticket: Ticket) -> Reply {
    if let Some(waiter) = dispatcher.waiting.borrow().get(&ticket) {
        waiter.finish();
    }
    Reply::Done
}
