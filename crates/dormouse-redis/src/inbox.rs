//! The inbox: bounds the requests that are not yet answered. Those that may wait do not count,
//! since they would fill it for as long as they wait; `WAITERS_MAX` bounds them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dormouse_core::backend::{Admission, Load, Request};
use dormouse_core::error::Error;

#[derive(Debug, Default)]
pub(crate) struct Inbox(Mutex<Load>);

/// A submission's share of the inbox, until it is dropped.
#[derive(Debug)]
pub(crate) struct InboxShare {
    inbox: Arc<Inbox>,
    load: Load,
}

impl Inbox {
    /// Takes a submission in, or refuses it as `busy`.
    pub(crate) fn admit(self: &Arc<Inbox>, batch: &[Request]) -> Result<InboxShare, Error> {
        let commands = batch.iter().map(|request| &request.command);
        let admission = Admission::of(commands.filter(|command| !command.may_wait()));
        let mut held = self.lock();
        *held = admission.admit(*held)?;
        Ok(InboxShare { inbox: Arc::clone(self), load: admission.load() })
    }

    /// Requests that are not yet answered.
    pub(crate) fn requests(&self) -> usize {
        self.lock().requests
    }

    fn lock(&self) -> MutexGuard<'_, Load> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InboxShare {
    fn drop(&mut self) {
        *self.inbox.lock() -= self.load;
    }
}

#[cfg(test)]
mod tests {
    use dormouse_core::backend::Ticket;
    use dormouse_core::command::Command;
    use dormouse_core::op::Lock;

    use super::*;

    #[test]
    fn requests_count_until_they_are_answered_unless_they_may_wait() {
        let request = |wait_ms| {
            let (name, owner) = ("name".into(), "owner".into());
            let command = Command::Lock(Lock { name, owner, ttl_ms: 1_000, wait_ms });
            Request::new(Ticket(1), command)
        };
        let inbox = Arc::new(Inbox::default());
        let share = inbox.admit(&[request(0), request(5)]).expect("room");
        assert_eq!(inbox.requests(), 1);
        drop(share);
        assert_eq!(inbox.requests(), 0);
    }
}
