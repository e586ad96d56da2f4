//! Commands: which partitions they concern, and how the answers become one.

mod jobs;
mod lease;
mod lock;
mod put;
mod query;
mod reserve;
mod session;
pub(crate) mod single;
mod stats;
mod topic;

use std::rc::Rc;

use dormouse_core::backend::{Answer, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::limits::TTL_MS_MAX;
use dormouse_core::op::{PauseTopic, check};
use dormouse_core::topic::TopicName;

use crate::dispatch::Desk;
use crate::partition::{Ask, BatchNo, Effect, Partition, Raw, To};
use crate::wire::{Op, Reader, Records, strange};

pub(crate) use put::is_good;

/// Does one command.
pub(crate) async fn run(
    desk: &Rc<Desk>,
    batch: BatchNo,
    ticket: Ticket,
    command: Command,
) -> Answer {
    match command {
        Command::Put(puts) => put::put(desk, batch, puts).await,
        Command::Reserve(reserve) => reserve::reserve(desk, batch, ticket, reserve).await,
        Command::Ack(tokens) => lease::ack(desk, batch, tokens).await,
        Command::Nack(nacks) => lease::nack(desk, batch, nacks).await,
        Command::Release(releases) => lease::release(desk, batch, releases).await,
        Command::Extend(extends) => lease::extend(desk, batch, extends).await,
        Command::ReserveId(reserve) => jobs::reserve_id(desk, batch, reserve).await,
        Command::Kill(kills) => jobs::kill(desk, batch, kills).await,
        Command::Cancel(cancels) => jobs::cancel(desk, batch, cancels).await,
        Command::Reschedule(moves) => jobs::reschedule(desk, batch, moves).await,
        Command::Revive(targets) => jobs::revive(desk, batch, targets).await,
        Command::Get(targets) => jobs::get(desk, batch, targets).await,
        Command::ReviveTopic(revive) => topic::revive(desk, batch, &revive).await,
        Command::Kick(kick) => topic::kick(desk, batch, &kick).await,
        Command::Purge(name) => topic::purge(desk, batch, &name).await,
        Command::SetTopic(set) => topic::set(desk, batch, set).await,
        Command::Pause(pause) => topic::pause(desk, batch, &pause).await,
        Command::Resume(name) => topic::resume(desk, batch, &name).await,
        Command::Peek(peek) => query::peek(desk, batch, &peek).await,
        Command::List(list) => query::list(desk, batch, &list).await,
        Command::Forecast(forecast) => query::forecast(desk, batch, &forecast).await,
        Command::Topics(page) => stats::topics(desk, batch, &page).await,
        Command::Stats(stats) => stats::stats(desk, batch, &stats).await,
        Command::OpenSession => Ok(session::open(desk)),
        Command::CloseSession(session) => session::close(desk, batch, session).await,
        Command::Lock(lock) => lock::lock(desk, batch, ticket, lock).await,
        Command::RenewLock(renew) => lock::renew(desk, batch, &renew).await,
        Command::Unlock(unlock) => lock::unlock(desk, batch, &unlock).await,
        Command::Withdraw(ticket) => Ok(session::withdraw(desk, ticket)),
    }
}

/// How long a pause lasts; `None` = until resumed.
pub(crate) fn pause_ms(pause: &PauseTopic) -> Result<Option<u64>, Error> {
    pause.for_ms.map(|ms| check::span("pause", ms, 0, TTL_MS_MAX)).transpose()
}

/// Asks a partition.
pub(crate) async fn ask<T>(
    partition: &Partition,
    batch: BatchNo,
    ask: impl FnOnce(To<T>) -> Ask,
) -> Result<T, Error> {
    line_up(partition, batch, ask).await
}

/// Puts an ask in line now; what it gives is to be awaited.
pub(crate) fn line_up<T, A: FnOnce(To<T>) -> Ask>(
    partition: &Partition,
    batch: BatchNo,
    ask: A,
) -> impl Future<Output = Result<T, Error>> + use<T, A> {
    let (to, from) = tokio::sync::oneshot::channel();
    partition.ask(batch, ask(To::Task(to)));
    let closed = |_| Err(Error::unavailable("the backend has been closed"));
    async move { from.await.unwrap_or_else(closed) }
}

/// Asks a partition what only who asks can read.
pub(crate) async fn ask_other(
    partition: &Partition,
    batch: BatchNo,
    effect: Effect,
    op: Op,
) -> Result<Raw, Error> {
    line_up(partition, batch, |to| Ask::Other { op, effect, priorities: Vec::new(), to }).await
}

/// How items become an operation.
pub(crate) struct Asked<O, P> {
    pub(crate) effect: Effect,
    pub(crate) op: O,
    pub(crate) priorities: P,
}

impl<I, O: Fn(&[I]) -> Op> Asked<O, fn(&[I]) -> Vec<u32>> {
    /// Items that bring no priority with them.
    pub(crate) fn new(effect: Effect, op: O) -> Self {
        Asked { effect, op, priorities: |_| Vec::new() }
    }
}

/// Items that go to their partitions and come back in their order.
pub(crate) struct Scatter<I> {
    /// By partition: which items, and those.
    groups: Vec<(Rc<Partition>, Vec<usize>, Vec<I>)>,
}

impl<I> Scatter<I> {
    pub(crate) fn new() -> Scatter<I> {
        Scatter { groups: Vec::new() }
    }

    /// An item for a partition; asks are kept to `most` items.
    pub(crate) fn add(&mut self, partition: &Rc<Partition>, index: usize, item: I, most: usize) {
        let open = self
            .groups
            .iter_mut()
            .rev()
            .find(|(to, _, items)| Rc::ptr_eq(to, partition) && items.len() < most);
        match open {
            Some((_, indexes, items)) => {
                indexes.push(index);
                items.push(item);
            }
            None => self.groups.push((Rc::clone(partition), vec![index], vec![item])),
        }
    }

    /// Asks all partitions; what came of each item goes to its place.
    pub(crate) async fn gather<T>(
        self,
        batch: BatchNo,
        to: &mut [Option<Result<T, Error>>],
        ask: impl Fn(Vec<I>, To<Vec<Result<T, Error>>>) -> Ask,
    ) {
        let mut under_way = Vec::with_capacity(self.groups.len());
        for (partition, indexes, items) in self.groups {
            under_way.push((indexes, line_up(&partition, batch, |to| ask(items, to))));
        }
        for (indexes, answer) in under_way {
            match answer.await {
                Ok(results) => {
                    for (index, result) in indexes.into_iter().zip(results) {
                        if let Some(place) = to.get_mut(index) {
                            *place = Some(result);
                        }
                    }
                }
                Err(error) => {
                    for index in indexes {
                        if let Some(place) = to.get_mut(index) {
                            *place = Some(Err(error.clone()));
                        }
                    }
                }
            }
        }
    }
}

impl<I> Scatter<I> {
    /// The same by an operation that is read here, item by item.
    pub(crate) async fn gather_other<T, O, P, R>(
        self,
        batch: BatchNo,
        to: &mut [Option<Result<T, Error>>],
        asked: Asked<O, P>,
        read: R,
    ) where
        O: Fn(&[I]) -> Op,
        P: Fn(&[I]) -> Vec<u32>,
        R: Fn(&mut Reader<'_>, &mut Records, &TopicName, &I) -> Result<Result<T, Error>, Error>,
    {
        let mut under_way = Vec::with_capacity(self.groups.len());
        for (partition, indexes, items) in self.groups {
            let (op, priorities) = ((asked.op)(&items), (asked.priorities)(&items));
            let effect = asked.effect;
            let ask = move |to| Ask::Other { op, effect, priorities, to };
            let answer = line_up(&partition, batch, ask);
            under_way.push((partition, indexes, items, answer));
        }
        for (partition, indexes, items, answer) in under_way {
            let answer = answer.await;
            let text = answer.as_ref().map(|raw| raw.answer.clone()).unwrap_or_default();
            let mut from = Reader::new(&text);
            let mut answer = answer.map(|raw| raw.records);
            for (index, item) in indexes.into_iter().zip(items) {
                let result = match (&mut answer, &partition.topic) {
                    (Ok(records), Some(topic)) => read(&mut from, records, topic, &item),
                    (Ok(_), None) => Err(strange("locks are no jobs")),
                    (Err(error), _) => Err(error.clone()),
                };
                if let Some(place) = to.get_mut(index) {
                    *place = Some(result.and_then(|result| result));
                }
            }
        }
    }
}

/// All places are filled; one that is not would be a bug, and is an error.
pub(crate) fn all<T>(places: Vec<Option<Result<T, Error>>>) -> Vec<Result<T, Error>> {
    let missing = || Err(Error::unavailable("Redis gave no answer to this item"));
    places.into_iter().map(|place| place.unwrap_or_else(missing)).collect()
}

/// So many empty places.
pub(crate) fn places<T>(count: usize) -> Vec<Option<Result<T, Error>>> {
    (0..count).map(|_| None).collect()
}

/// The whole request is in order.
pub(crate) fn reply<T>(
    places: Vec<Option<Result<T, Error>>>,
    reply: impl FnOnce(Vec<Result<T, Error>>) -> Reply,
) -> Answer {
    Ok(reply(all(places)))
}
