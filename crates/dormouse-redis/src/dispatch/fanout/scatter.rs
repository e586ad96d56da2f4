//! Groups the items of a command by partition, sends one request per group, and puts the results
//! back in the order of the items.

use std::rc::Rc;

use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::op::check;
use dormouse_core::topic::TopicName;

use super::Fanout;
use crate::codec::ItemResult;
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
    /// A result per item; `None` = not known yet.
    results: Vec<Option<Result<T, Error>>>,
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
        let mut scatter = Scatter { results: Vec::with_capacity(given.len()), groups: Vec::new() };
        for (index, given) in given.into_iter().enumerate() {
            let result = match route(given) {
                Ok(Routed::To(partition, item)) => {
                    let most = most(&item);
                    scatter.add(partition, index, item, most);
                    None
                }
                Ok(Routed::Done(result)) => Some(Ok(result)),
                Err(error) => Some(Err(error)),
            };
            scatter.results.push(result);
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

    fn set(&mut self, index: usize, result: Result<T, Error>) {
        if let Some(entry) = self.results.get_mut(index) {
            *entry = Some(result);
        }
    }

    /// The results of all items. A missing one is a bug, and answered with an error.
    fn all(self) -> PerItem<T> {
        let missing = || Err(Error::unavailable("Redis gave no answer to this item"));
        self.results.into_iter().map(|entry| entry.unwrap_or_else(missing)).collect()
    }

    /// Sends a request per group.
    pub(super) async fn gather(
        mut self,
        fanout: Fanout<'_>,
        request: impl Fn(Vec<I>, ReplyTo<PerItem<T>>) -> PartitionRequest,
    ) -> PerItem<T> {
        let mut pending = Vec::with_capacity(self.groups.len());
        for (partition, indexes, items) in self.groups.drain(..) {
            pending.push((indexes, fanout.submit(&partition, |to| request(items, to))));
        }
        for (indexes, answer) in pending {
            match answer.await {
                Ok(results) => {
                    indexes.into_iter().zip(results).for_each(|(at, result)| self.set(at, result));
                }
                Err(error) => indexes.into_iter().for_each(|at| self.set(at, Err(error.clone()))),
            }
        }
        self.all()
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
                self.set(index, result);
            }
        }
        self.all()
    }
}
