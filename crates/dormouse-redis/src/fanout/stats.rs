//! stats and topics: counts over partitions.

use std::rc::Rc;

use crate::limits::LOCK_PARTITIONS;
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::limits::PAGE_MAX;
use dormouse_core::op::{Stats, TopicStats, Topics, TopicsPage};
use dormouse_core::refusal::no_topic;
use dormouse_core::topic::{Settings, TopicName};

use super::{run_op, submit};
use crate::codec::stats::PartitionStats;
use crate::codec::{lock, stats};
use crate::dispatch::{Dispatcher, Topic};
use crate::partition::{Effect, PartitionRequest, SubmissionNo};
use crate::wire::Reader;
use crate::wire::codes::NEVER;

/// The counts of a topic. It exists if it has jobs, held keys, waiters, settings or a pause; the
/// register also keeps topics that do not exist any more.
struct TopicCount {
    stats: TopicStats,
    exists: bool,
}

pub(super) async fn stats(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    stats: &Stats,
) -> Answer {
    let Some(name) = &stats.topic else {
        return Ok(Reply::Stats(totals(dispatcher, submission).await?));
    };
    let topic = dispatcher.known(name).ok_or_else(|| no_topic(name))?;
    let counted = count(submission, &topic).await?;
    if counted.exists { Ok(Reply::Stats(counted.stats)) } else { Err(no_topic(name)) }
}

/// Asks all partitions of a topic at once, and returns a future of the sum.
fn count(
    submission: SubmissionNo,
    topic: &Rc<Topic>,
) -> impl Future<Output = Result<TopicCount, Error>> + use<> {
    let mut pending = Vec::with_capacity(topic.partitions.len());
    for partition in &topic.partitions {
        let request = |reply_to| PartitionRequest::Other {
            op: stats::op(),
            effect: Effect::Read,
            priorities: Vec::new(),
            reply_to,
        };
        pending.push(submit(partition, submission, request));
    }
    let topic = Rc::clone(topic);
    async move {
        let mut sum = TopicStats { topics: 1, ..TopicStats::default() };
        let mut exists = false;
        for (partition, answer) in topic.partitions.iter().zip(pending) {
            let raw = answer.await?;
            let sums = stats::read(&mut Reader::new(&raw.answer))?;
            sum.waiters = sum.waiters.max(partition.blocking_waiters() as u64);
            sum.settings = partition.config.borrow().settings.clone();
            exists |= sums.jobs > 0 || sums.holds > 0 || sums.paused_until > 0;
            add(&mut sum, &sums, raw.now_ms);
        }
        exists |= sum.waiters > 0 || sum.settings != Settings::default();
        Ok(TopicCount { stats: sum, exists })
    }
}

async fn count_all(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    names: &[TopicName],
) -> Result<Vec<(TopicName, TopicCount)>, Error> {
    let mut pending = Vec::with_capacity(names.len());
    for name in names {
        if let Some(topic) = dispatcher.find(name).await? {
            pending.push((name.clone(), count(submission, &topic)));
        }
    }
    let mut all = Vec::with_capacity(pending.len());
    for (name, counted) in pending {
        all.push((name, counted.await?));
    }
    Ok(all)
}

fn add(sum: &mut TopicStats, sums: &PartitionStats, now_ms: u64) {
    sum.delayed += sums.delayed;
    sum.ready += sums.ready;
    sum.urgent += sums.urgent;
    sum.counts.add(&sums.counts);
    let late_ms = sums.oldest_ready_at.map(|at| now_ms.saturating_sub(at));
    sum.oldest_ready_ms = sum.oldest_ready_ms.max(late_ms);
    if sums.paused_until > 0 {
        let open_ended = sums.paused_until >= NEVER;
        sum.paused = Some((!open_ended).then(|| sums.paused_until.saturating_sub(now_ms)));
    }
}

/// The sum over all registered topics, also those that do not exist any more: their running totals
/// count.
async fn totals(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
) -> Result<TopicStats, Error> {
    let mut total = TopicStats::default();
    let mut after: Option<TopicName> = None;
    loop {
        let names = dispatcher.page(after.as_ref(), PAGE_MAX).await?;
        for counted in count_all(dispatcher, submission, &names).await? {
            let (_, TopicCount { stats, exists }) = counted;
            total.topics += u64::from(exists);
            total.delayed += stats.delayed;
            total.ready += stats.ready;
            total.urgent += stats.urgent;
            total.counts.add(&stats.counts);
        }
        let last = names.last().cloned();
        if names.len() < PAGE_MAX || last.is_none() {
            break;
        }
        after = last;
    }
    total.waiters = dispatcher.waiting.borrow().len() as u64;
    for index in 0..LOCK_PARTITIONS {
        let partition = dispatcher.lock_partition_at(index);
        let raw = run_op(&partition, submission, Effect::Read, lock::op_count()).await?;
        total.locks += lock::read_count(&mut Reader::new(&raw.answer))?;
    }
    Ok(total)
}

/// A page of the topics that exist.
pub(super) async fn topics(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    page: &Topics,
) -> Answer {
    page.check()?;
    let mut found = Vec::new();
    let mut after = page.after.clone();
    loop {
        let names = dispatcher.page(after.as_ref(), page.limit + 1).await?;
        for (name, counted) in count_all(dispatcher, submission, &names).await? {
            if !counted.exists {
                continue;
            }
            if found.len() == page.limit {
                return Ok(Reply::Topics(TopicsPage { topics: found, more: true }));
            }
            found.push((name, counted.stats));
        }
        after = match names.last() {
            Some(last) if names.len() > page.limit => Some(last.clone()),
            _ => return Ok(Reply::Topics(TopicsPage { topics: found, more: false })),
        };
    }
}
