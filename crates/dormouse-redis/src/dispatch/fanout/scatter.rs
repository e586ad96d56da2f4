//! Groups the items of a command by partition, sends one request per group, and puts the results
//! back in the order of the items.
//!
//! Most commands have one item, or all of them in one partition: its reply then goes straight to
//! the caller, and no task is needed (`Fanout::answer_items`).

use std::rc::Rc;

use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::op::check;
use dormouse_core::topic::TopicName;
use tokio::sync::oneshot;

use super::{Fanout, received};
use crate::codec::ItemResult;
use crate::outbox::Caller;
use crate::partition::{Effect, Partition, PartitionRequest, PerItem, ReplyTo};
use crate::wire::{Op, Reader, Records, malformed};

/// Where an item goes, or its result if that is known already.
pub(super) enum Routed<I, T> {
    To(Rc<Partition>, I),
    Done(T),
}

/// What was changed, in words, and the job if it is known.
pub(super) type Change = (String, Option<JobId>);

/// The items of a command, grouped by partition.
pub(super) struct Scatter<I, T> {
    /// How many there are.
    items: usize,
    /// The results known already, by index.
    results: Vec<(usize, Result<T, Error>)>,
    /// Each with the indexes of its items in the command.
    groups: Vec<(Rc<Partition>, Vec<usize>, Vec<I>)>,
}

impl<I, T> Scatter<I, T> {
    /// Groups items; `most` is the most items in a group with this one.
    pub(super) fn new<G>(
        given: Vec<G>,
        most: impl Fn(&I) -> usize,
        route: impl Fn(G) -> Result<Routed<I, T>, Error>,
    ) -> Result<Scatter<I, T>, Error> {
        check::batch(given.len())?;
        let mut scatter = Scatter { items: given.len(), results: Vec::new(), groups: Vec::new() };
        for (index, given) in given.into_iter().enumerate() {
            match route(given) {
                Ok(Routed::To(partition, item)) => {
                    let most = most(&item);
                    scatter.add(partition, index, item, most);
                }
                Ok(Routed::Done(result)) => scatter.results.push((index, Ok(result))),
                Err(error) => scatter.results.push((index, Err(error))),
            }
        }
        Ok(scatter)
    }

    fn add(&mut self, partition: Rc<Partition>, index: usize, item: I, most: usize) {
        let open = self
            .groups
            .iter_mut()
            .rev()
            .find(|(to, _, items)| Rc::ptr_eq(to, &partition) && items.len() < most);
        match open {
            Some((_, indexes, items)) => {
                indexes.push(index);
                items.push(item);
            }
            None => self.groups.push((partition, vec![index], vec![item])),
        }
    }

    /// The results of all items. A missing one is a bug, and answered with an error.
    fn all(self) -> PerItem<T> {
        let mut all: Vec<_> = (0..self.items)
            .map(|_| Err(Error::unavailable("Redis gave no answer to this item")))
            .collect();
        for (index, result) in self.results {
            if let Some(entry) = all.get_mut(index) {
                *entry = result;
            }
        }
        all
    }

    /// The partitions among these whose dead jobs may become letters, as far as is known.
    pub(super) fn with_dead_topics(&self) -> Vec<Rc<Partition>> {
        let partitions = self.groups.iter().map(|(partition, ..)| partition);
        let may_have_one = |partition: &&Rc<Partition>| {
            let config = partition.config.borrow();
            config.version == 0 || config.settings.dead_topic.is_some()
        };
        partitions.filter(may_have_one).cloned().collect()
    }

    /// Sends a request per group now, and returns a future of all results.
    pub(super) fn gather<R: Fn(Vec<I>, ReplyTo<PerItem<T>>) -> PartitionRequest>(
        mut self,
        fanout: Fanout<'_>,
        request: R,
    ) -> impl Future<Output = PerItem<T>> + use<I, T, R> {
        let fanout = fanout.numbered();
        let mut pending = Vec::with_capacity(self.groups.len());
        for (partition, indexes, items) in self.groups.drain(..) {
            let (to, from) = oneshot::channel();
            partition.submit(fanout.submission, request(items, ReplyTo::Task(to)));
            pending.push((indexes, from));
        }
        async move {
            for (indexes, answer) in pending {
                match received(answer).await {
                    Ok(results) => self.results.extend(indexes.into_iter().zip(results)),
                    Err(error) => {
                        let failed = indexes.into_iter().map(|index| (index, Err(error.clone())));
                        self.results.extend(failed);
                    }
                }
            }
            self.all()
        }
    }

    /// Sends an operation per group; the replies are read item by item. `change` says what an item
    /// has changed, for the case that the replicas did not confirm it; `None` = nothing.
    pub(super) async fn gather_op(
        mut self,
        fanout: Fanout<'_>,
        effect: Effect,
        op: impl Fn(&[I]) -> Op,
        read: impl Fn(&mut Reader<'_>, &mut Records, &TopicName, &I) -> ItemResult<T>,
        change: impl Fn(&T, &I) -> Option<Change>,
    ) -> PerItem<T> {
        let fanout = fanout.numbered();
        let mut pending = Vec::with_capacity(self.groups.len());
        for (partition, indexes, items) in self.groups.drain(..) {
            let answer = fanout.submit_op(&partition, effect, op(&items));
            pending.push((partition, indexes, items, answer));
        }
        for (partition, indexes, items, answer) in pending {
            let answer = answer.await;
            let text = answer.as_ref().map(|raw| raw.answer.clone()).unwrap_or_default();
            let mut from = Reader::new(&text);
            let confirmed = answer.as_ref().is_ok_and(|raw| raw.confirmed);
            let mut answer = answer.map(|raw| raw.records);
            for (index, item) in indexes.into_iter().zip(items) {
                let result = match (&mut answer, &partition.topic) {
                    (Ok(records), Some(topic)) => read(&mut from, records, topic, &item),
                    (Ok(_), None) => Err(malformed("locks are no jobs")),
                    (Err(error), _) => Err(error.clone()),
                };
                let change = match &result {
                    Ok(Ok(reply)) if !confirmed => change(reply, &item),
                    _ => None,
                };
                let result = match change {
                    Some((done, id)) => Err(fanout.dispatcher.shared.unconfirmed(&done, id)),
                    None => result.and_then(|result| result),
                };
                self.results.push((index, result));
            }
        }
        self.all()
    }
}

impl Fanout<'_> {
    /// Sends a request per group now, and answers the caller when all results are there.
    pub(super) fn answer_items<I: 'static, T: 'static>(
        self,
        scatter: Result<Scatter<I, T>, Error>,
        caller: Caller,
        request: impl Fn(Vec<I>, ReplyTo<PerItem<T>>) -> PartitionRequest + 'static,
        reply: fn(PerItem<T>) -> Reply,
    ) {
        let mut scatter = match scatter {
            Ok(scatter) => scatter,
            Err(error) => return caller.answer(Err(error)),
        };
        if scatter.results.is_empty()
            && scatter.groups.len() == 1
            && let Some((partition, _, items)) = scatter.groups.pop()
        {
            let reply_to = ReplyTo::Caller(caller, reply);
            return partition.submit(self.submission, request(items, reply_to));
        }
        let gathered = scatter.gather(self, request);
        tokio::task::spawn_local(async move { caller.answer(Ok(reply(gathered.await))) });
    }
}
