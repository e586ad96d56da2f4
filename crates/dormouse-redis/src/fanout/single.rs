//! Requests that concern one partition and nothing else, as most do: they stand in its line at
//! once, and their answers go straight back to who made them. The others have a task each.

use std::rc::Rc;

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::op::check;

use crate::dispatch::{Caller, Dispatcher, Topic};
use crate::partition::waiter::Waiter;
use crate::partition::{BATCH_JOBS_MAX, Partition, PartitionRequest, ReplyTo, SubmissionNo};

use super::put::is_good;

/// Where a request goes that concerns one partition.
pub(crate) enum Route {
    Partition(Rc<Partition>),
    /// To one after the other.
    Any(Rc<Topic>),
}

/// Where a request goes; `None` = it takes more than an ask of one partition.
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

/// Puts a request in the line of its place; `batch` is what it came with, if that was more.
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
            // It was checked.
            let ttr_ms = check::ttr(reserve.ttr_ms).unwrap_or_default();
            let no = dispatcher.next_waiter_no();
            let waiter =
                Waiter::new(no, submission, reserve.max, ttr_ms, false).replying_to(caller);
            Rc::new(waiter).park_at(std::slice::from_ref(&route));
        }
        _ => {}
    }
}
