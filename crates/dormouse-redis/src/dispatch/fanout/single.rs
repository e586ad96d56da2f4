//! The fast path, for commands that go to one partition, as most do: they are queued there at once,
//! and the reply goes straight to the caller. All others need a task.

use std::rc::Rc;

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::op::check;

use crate::dispatch::{Dispatcher, Topic};
use crate::outbox::Caller;
use crate::partition::waiter::Waiter;
use crate::partition::{Partition, PartitionRequest, ReplyTo};
use crate::scheduler::{BATCH_JOBS_MAX, NewWaiter, SubmissionNo};

use super::put::is_good;

/// The partition a command goes to.
pub(crate) enum Route {
    Partition(Rc<Partition>),
    /// Any partition of the topic, round robin.
    Any(Rc<Topic>),
}

/// The route of a command; `None` = it needs a task.
pub(crate) fn route(dispatcher: &Dispatcher, command: &Command) -> Option<Route> {
    match command {
        Command::Put(puts) => {
            let [put] = puts.as_slice() else { return None };
            let topic = dispatcher.known(&put.topic).filter(|_| is_good(put))?;
            match &put.key {
                Some(key) => topic.partition_of_key(key).cloned().map(Route::Partition),
                None => Some(Route::Any(topic)),
            }
        }
        Command::Ack(tokens) => {
            let [token] = tokens.as_slice() else { return None };
            dispatcher.partition_of(token.id).map(Route::Partition)
        }
        Command::Reserve(reserve) => {
            let is_plain = reserve.wait_ms == 0
                && reserve.session.is_none()
                && reserve.max <= BATCH_JOBS_MAX
                && reserve.check().is_ok();
            let [name] = reserve.topics.as_slice() else { return None };
            let topic = dispatcher.known(name).filter(|_| is_plain)?;
            let [partition] = topic.partitions.as_slice() else { return None };
            Some(Route::Partition(Rc::clone(partition)))
        }
        _ => None,
    }
}

/// Queues a command at its partition. `submission` is `None` if it was submitted alone.
pub(crate) fn submit(
    dispatcher: &Dispatcher,
    submission: Option<SubmissionNo>,
    route: Route,
    command: Command,
    caller: Caller,
) {
    let route = match route {
        Route::Partition(partition) => Some(partition),
        Route::Any(topic) => topic.next_partition().cloned(),
    };
    let Some(route) = route else {
        return caller.answer(Err(Error::unavailable("the topic has no partition")));
    };
    match command {
        Command::Put(puts) => {
            let reply_to =
                ReplyTo::Caller(caller, |put| Ok(Reply::Put(put.unwrap_or_else(|e| vec![Err(e)]))));
            route.submit(submission, PartitionRequest::Put { puts, reply_to });
        }
        Command::Ack(tokens) => {
            let mut sessions = dispatcher.sessions.borrow_mut();
            tokens.iter().for_each(|&token| sessions.drop_lease(token));
            let reply_to = ReplyTo::Caller(caller, |ack| {
                Ok(Reply::Ended(ack.unwrap_or_else(|e| vec![Err(e)])))
            });
            route.submit(submission, PartitionRequest::Ack { tokens, reply_to });
        }
        Command::Reserve(reserve) => {
            // `route` has checked it.
            let ttr_ms = check::ttr(reserve.ttr_ms).unwrap_or_default();
            let no = dispatcher.next_waiter_no();
            let new = NewWaiter { max: reserve.max, ttr_ms, submission, is_blocking: false };
            let waiter = Waiter::new(&dispatcher.shared, no, new).replying_to(caller);
            Rc::new(waiter).park_at(std::slice::from_ref(&route));
        }
        _ => {}
    }
}
