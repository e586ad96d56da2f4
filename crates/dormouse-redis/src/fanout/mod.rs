//! Commands: which partitions they go to, and how the replies of those become one reply.
//!
//! `single` handles, without a task, the commands that go to one partition. The others run here in
//! a task each: `Scatter` groups the items of a command by partition, sends one request per group,
//! and puts the results back in the order of the items.

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

use crate::dispatch::Dispatcher;
use crate::partition::{Effect, Partition, PartitionRequest, RawReply, ReplyTo, SubmissionNo};
use crate::wire::{Op, Reader, Records, malformed};

pub(crate) use put::is_good;

/// Runs one command.
pub(crate) async fn run(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    ticket: Ticket,
    command: Command,
) -> Answer {
    match command {
        Command::Put(puts) => put::put(dispatcher, submission, puts).await,
        Command::Reserve(reserve) => {
            reserve::reserve(dispatcher, submission, ticket, reserve).await
        }
        Command::Ack(tokens) => lease::ack(dispatcher, submission, tokens).await,
        Command::Nack(nacks) => lease::nack(dispatcher, submission, nacks).await,
        Command::Release(releases) => lease::release(dispatcher, submission, releases).await,
        Command::Extend(extends) => lease::extend(dispatcher, submission, extends).await,
        Command::ReserveId(reserve) => jobs::reserve_id(dispatcher, submission, reserve).await,
        Command::Kill(kills) => jobs::kill(dispatcher, submission, kills).await,
        Command::Cancel(cancels) => jobs::cancel(dispatcher, submission, cancels).await,
        Command::Reschedule(moves) => jobs::reschedule(dispatcher, submission, moves).await,
        Command::Revive(targets) => jobs::revive(dispatcher, submission, targets).await,
        Command::Get(targets) => jobs::get(dispatcher, submission, targets).await,
        Command::ReviveTopic(revive) => topic::revive(dispatcher, submission, &revive).await,
        Command::Kick(kick) => topic::kick(dispatcher, submission, &kick).await,
        Command::Purge(name) => topic::purge(dispatcher, submission, &name).await,
        Command::SetTopic(set) => topic::set(dispatcher, submission, set).await,
        Command::Pause(pause) => topic::pause(dispatcher, submission, &pause).await,
        Command::Resume(name) => topic::resume(dispatcher, submission, &name).await,
        Command::Peek(peek) => query::peek(dispatcher, submission, &peek).await,
        Command::List(list) => query::list(dispatcher, submission, &list).await,
        Command::Forecast(forecast) => query::forecast(dispatcher, submission, &forecast).await,
        Command::Topics(page) => stats::topics(dispatcher, submission, &page).await,
        Command::Stats(stats) => stats::stats(dispatcher, submission, &stats).await,
        Command::OpenSession => Ok(session::open(dispatcher)),
        Command::CloseSession(session) => session::close(dispatcher, submission, session).await,
        Command::Lock(lock) => lock::lock(dispatcher, submission, ticket, lock).await,
        Command::RenewLock(renew) => lock::renew(dispatcher, submission, &renew).await,
        Command::Unlock(unlock) => lock::unlock(dispatcher, submission, &unlock).await,
        Command::Withdraw(ticket) => Ok(session::withdraw(dispatcher, ticket)),
    }
}

/// How long a pause lasts; `None` = until resumed.
pub(crate) fn pause_ms(pause: &PauseTopic) -> Result<Option<u64>, Error> {
    pause.for_ms.map(|ms| check::span("pause", ms, 0, TTL_MS_MAX)).transpose()
}

/// Submits a request now, and returns a future of its reply.
pub(crate) fn submit<T, A: FnOnce(ReplyTo<T>) -> PartitionRequest>(
    partition: &Partition,
    submission: SubmissionNo,
    request: A,
) -> impl Future<Output = Result<T, Error>> + use<T, A> {
    let (to, from) = tokio::sync::oneshot::channel();
    partition.submit(submission, request(ReplyTo::Task(to)));
    let closed = |_| Err(Error::unavailable("the backend has been closed"));
    async move { from.await.unwrap_or_else(closed) }
}

/// Runs one operation, whose reply the caller decodes.
pub(crate) async fn run_op(
    partition: &Partition,
    submission: SubmissionNo,
    effect: Effect,
    op: Op,
) -> Result<RawReply, Error> {
    submit(partition, submission, |reply_to| PartitionRequest::Other {
        op,
        effect,
        priorities: Vec::new(),
        reply_to,
    })
    .await
}

/// How the items of a group become an operation.
pub(crate) struct OpSpec<O, P> {
    pub(crate) effect: Effect,
    pub(crate) op: O,
    pub(crate) priorities: P,
}

impl<I, O: Fn(&[I]) -> Op> OpSpec<O, fn(&[I]) -> Vec<u32>> {
    /// For items that use no priorities.
    pub(crate) fn new(effect: Effect, op: O) -> Self {
        OpSpec { effect, op, priorities: |_| Vec::new() }
    }
}

/// The items of a command, grouped by partition.
pub(crate) struct Scatter<I> {
    /// Each with the indexes of its items in the command.
    groups: Vec<(Rc<Partition>, Vec<usize>, Vec<I>)>,
}

impl<I> Scatter<I> {
    pub(crate) fn new() -> Scatter<I> {
        Scatter { groups: Vec::new() }
    }

    /// Adds an item to a group of at most `most` items.
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

    /// Sends a request per group; the results go to the entries of `to` with the items' indexes.
    pub(crate) async fn gather<T>(
        self,
        submission: SubmissionNo,
        to: &mut [Option<Result<T, Error>>],
        request: impl Fn(Vec<I>, ReplyTo<Vec<Result<T, Error>>>) -> PartitionRequest,
    ) {
        let mut pending = Vec::with_capacity(self.groups.len());
        for (partition, indexes, items) in self.groups {
            pending.push((indexes, submit(&partition, submission, |to| request(items, to))));
        }
        for (indexes, answer) in pending {
            match answer.await {
                Ok(results) => {
                    for (index, result) in indexes.into_iter().zip(results) {
                        if let Some(entry) = to.get_mut(index) {
                            *entry = Some(result);
                        }
                    }
                }
                Err(error) => {
                    for index in indexes {
                        if let Some(entry) = to.get_mut(index) {
                            *entry = Some(Err(error.clone()));
                        }
                    }
                }
            }
        }
    }
}

impl<I> Scatter<I> {
    /// The same with operations whose replies are read item by item.
    pub(crate) async fn gather_op<T, O, P, R>(
        self,
        submission: SubmissionNo,
        to: &mut [Option<Result<T, Error>>],
        spec: OpSpec<O, P>,
        read: R,
    ) where
        O: Fn(&[I]) -> Op,
        P: Fn(&[I]) -> Vec<u32>,
        R: Fn(&mut Reader<'_>, &mut Records, &TopicName, &I) -> Result<Result<T, Error>, Error>,
    {
        let mut pending = Vec::with_capacity(self.groups.len());
        for (partition, indexes, items) in self.groups {
            let (op, priorities) = ((spec.op)(&items), (spec.priorities)(&items));
            let effect = spec.effect;
            let request =
                move |reply_to| PartitionRequest::Other { op, effect, priorities, reply_to };
            let answer = submit(&partition, submission, request);
            pending.push((partition, indexes, items, answer));
        }
        for (partition, indexes, items, answer) in pending {
            let answer = answer.await;
            let text = answer.as_ref().map(|raw| raw.answer.clone()).unwrap_or_default();
            let mut from = Reader::new(&text);
            let mut answer = answer.map(|raw| raw.records);
            for (index, item) in indexes.into_iter().zip(items) {
                let result = match (&mut answer, &partition.topic) {
                    (Ok(records), Some(topic)) => read(&mut from, records, topic, &item),
                    (Ok(_), None) => Err(malformed("locks are no jobs")),
                    (Err(error), _) => Err(error.clone()),
                };
                if let Some(entry) = to.get_mut(index) {
                    *entry = Some(result.and_then(|result| result));
                }
            }
        }
    }
}

/// The results of all items. A missing one is a bug, and answered with an error.
pub(crate) fn all<T>(unanswered: Vec<Option<Result<T, Error>>>) -> Vec<Result<T, Error>> {
    let missing = || Err(Error::unavailable("Redis gave no answer to this item"));
    unanswered.into_iter().map(|entry| entry.unwrap_or_else(missing)).collect()
}

/// A list for the results of `count` items.
pub(crate) fn unanswered<T>(count: usize) -> Vec<Option<Result<T, Error>>> {
    (0..count).map(|_| None).collect()
}

pub(crate) fn reply<T>(
    unanswered: Vec<Option<Result<T, Error>>>,
    reply: impl FnOnce(Vec<Result<T, Error>>) -> Reply,
) -> Answer {
    Ok(reply(all(unanswered)))
}
