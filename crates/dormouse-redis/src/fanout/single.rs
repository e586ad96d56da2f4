//! Requests that concern one partition and nothing else, as most do: they stand in its line at
//! once, and their answers go straight back to who made them. The others have a task each.

use std::rc::Rc;

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::op::check;

use crate::dispatch::{Addressee, Desk, Topic};
use crate::partition::waiter::Demand;
use crate::partition::{Ask, BatchNo, FLIGHT_JOBS_MAX, Partition, To};

use super::put::is_good;

/// Where a request goes that concerns one partition.
pub(crate) enum Place {
    Partition(Rc<Partition>),
    /// To one after the other.
    Any(Rc<Topic>),
}

/// Where a request goes; `None` = it takes more than an ask of one partition.
pub(crate) fn place(desk: &Desk, command: &Command) -> Option<Place> {
    match command {
        Command::Put(puts) => {
            let [put] = puts.as_slice() else { return None };
            let topic = desk.known(&put.topic).filter(|_| is_good(put))?;
            match &put.key {
                Some(key) => topic.partition_of_key(key).cloned().map(Place::Partition),
                None => Some(Place::Any(topic)),
            }
        }
        Command::Ack(tokens) => {
            let [token] = tokens.as_slice() else { return None };
            desk.partition_of(token.id).map(Place::Partition)
        }
        Command::Reserve(reserve) => {
            let is_plain = reserve.wait_ms == 0
                && reserve.session.is_none()
                && reserve.max <= FLIGHT_JOBS_MAX
                && reserve.check().is_ok();
            let [name] = reserve.topics.as_slice() else { return None };
            let topic = desk.known(name).filter(|_| is_plain)?;
            let [partition] = topic.partitions.as_slice() else { return None };
            Some(Place::Partition(Rc::clone(partition)))
        }
        _ => None,
    }
}

/// Puts a request in the line of its place; `batch` is what it came with, if that was more.
pub(crate) fn go(
    desk: &Desk,
    batch: Option<BatchNo>,
    place: Place,
    command: Command,
    caller: Addressee,
) {
    let place = match place {
        Place::Partition(partition) => Some(partition),
        Place::Any(topic) => topic.next_partition().cloned(),
    };
    let Some(place) = place else {
        return caller.answer(Err(Error::unavailable("the topic has no partition")));
    };
    match command {
        Command::Put(puts) => {
            let to = To::Caller(caller, |put| Ok(Reply::Put(put.unwrap_or_else(|e| vec![Err(e)]))));
            place.ask(batch, Ask::Put { puts, to });
        }
        Command::Ack(tokens) => {
            let mut sessions = desk.sessions.borrow_mut();
            tokens.iter().for_each(|&token| sessions.drop_lease(token));
            let to =
                To::Caller(caller, |ack| Ok(Reply::Ended(ack.unwrap_or_else(|e| vec![Err(e)]))));
            place.ask(batch, Ask::Ack { tokens, to });
        }
        Command::Reserve(reserve) => {
            // It was checked.
            let ttr_ms = check::ttr(reserve.ttr_ms).unwrap_or_default();
            let no = desk.next_demand();
            let demand = Demand::new(no, batch, reserve.max, ttr_ms, false).answering(caller);
            Rc::new(demand).line_up(std::slice::from_ref(&place));
        }
        _ => {}
    }
}
