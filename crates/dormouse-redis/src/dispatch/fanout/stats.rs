//! stats and topics: counts over partitions.

use std::rc::Rc;

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::image::Counts;
use dormouse_core::limits::PAGE_MAX;
use dormouse_core::op::{Stats, TopicStats, Topics, TopicsPage};
use dormouse_core::refusal::no_topic;
use dormouse_core::topic::{Settings, TopicName};

use super::{Fanout, lock};
use crate::dispatch::Topic;
use crate::limits::LOCK_PARTITIONS;
use crate::partition::Effect;
use crate::wire::codes::NEVER;
use crate::wire::{Op, Reader};

/// The numbers of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionStats {
    pub(super) delayed: u64,
    pub(super) ready: u64,
    /// Ready, with a priority below the default.
    pub(super) urgent: u64,
    pub(super) counts: Counts,
    /// Keys kept taken after an ack.
    pub(super) holds: u64,
    /// Jobs in any state but done.
    pub(super) jobs: u64,
    /// The due time of the job that would be reserved next.
    pub(super) oldest_ready_at: Option<u64>,
    /// 0 = not paused, `NEVER` = until resumed.
    pub(super) paused_until: u64,
    /// One script call did not expire all dead jobs, so their number may be too high.
    pub(super) more: bool,
    pub(super) schedules: u64,
}

pub(super) fn op() -> Op {
    Op::new("stats", Vec::new())
}

pub(super) fn read(reply: &mut Reader<'_>) -> Result<PartitionStats, Error> {
    let (delayed, ready, urgent) = (reply.u64()?, reply.u64()?, reply.u64()?);
    let (leased, dead, holds) = (reply.u64()?, reply.u64()?, reply.u64()?);
    let counts = Counts {
        waiting: delayed + ready,
        leased,
        dead,
        done: 0, // follows
        puts: reply.u64()?,
        reserves: reply.u64()?,
        acks: reply.u64()?,
        nacks: reply.u64()?,
        expiries: reply.u64()?,
        releases: reply.u64()?,
        kills: reply.u64()?,
        cancels: reply.u64()?,
        bytes: reply.u64()?,
    };
    let jobs = reply.u64()?;
    let (is_ready, due_at) = (reply.u8()? == 1, reply.u48()?);
    let (paused_until, more, schedules) = (reply.u48()?, reply.u8()? == 1, reply.u64()?);
    let counts = Counts { done: reply.u64()?, ..counts };
    let oldest_ready_at = is_ready.then_some(due_at);
    Ok(PartitionStats {
        delayed,
        ready,
        urgent,
        counts,
        holds,
        jobs,
        oldest_ready_at,
        paused_until,
        more,
        schedules,
    })
}

/// The counts of a topic. It exists if it has jobs, held keys, schedules, waiters, settings or a
/// pause; the register also keeps topics that do not exist any more.
struct TopicCount {
    stats: TopicStats,
    exists: bool,
}

impl Fanout<'_> {
    pub(super) async fn stats(self, stats: &Stats) -> Answer {
        let Some(name) = &stats.topic else {
            return Ok(Reply::Stats(Box::new(self.totals().await?)));
        };
        let topic = self.dispatcher.known(name).ok_or_else(|| no_topic(name))?;
        let counted = self.count(topic).await?;
        if counted.exists { Ok(Reply::Stats(Box::new(counted.stats))) } else { Err(no_topic(name)) }
    }

    /// Asks all partitions of a topic at once, and returns a future of the sum.
    fn count(self, topic: Rc<Topic>) -> impl Future<Output = Result<TopicCount, Error>> + use<> {
        let submit = |partition| self.submit_op(partition, Effect::Read, op());
        let pending: Vec<_> = topic.partitions.iter().map(|to| submit(to)).collect();
        async move {
            let mut sum = TopicStats { topics: 1, ..TopicStats::default() };
            let mut exists = false;
            for (partition, answer) in topic.partitions.iter().zip(pending) {
                let raw = answer.await?;
                let sums = read(&mut Reader::new(&raw.answer))?;
                sum.waiters = sum.waiters.max(partition.blocking_waiters() as u64);
                sum.settings = partition.config.borrow().settings.clone();
                exists |= sums.jobs > 0 || sums.holds > 0 || sums.schedules > 0;
                exists |= sums.counts.done > 0;
                exists |= sums.paused_until > 0;
                add(&mut sum, &sums, raw.now_ms);
            }
            exists |= sum.waiters > 0 || sum.settings != Settings::default();
            Ok(TopicCount { stats: sum, exists })
        }
    }

    async fn count_all(self, names: &[TopicName]) -> Result<Vec<(TopicName, TopicCount)>, Error> {
        let mut pending = Vec::with_capacity(names.len());
        for name in names {
            if let Some(topic) = self.dispatcher.find(name).await? {
                pending.push((name.clone(), self.count(topic)));
            }
        }
        let mut all = Vec::with_capacity(pending.len());
        for (name, counted) in pending {
            all.push((name, counted.await?));
        }
        Ok(all)
    }

    /// The sum over all registered topics, also those that do not exist any more: their running
    /// totals count.
    async fn totals(self) -> Result<TopicStats, Error> {
        let mut total = TopicStats::default();
        let mut after: Option<TopicName> = None;
        loop {
            let names = self.dispatcher.page(after.as_ref(), PAGE_MAX).await?;
            for (_, TopicCount { stats, exists }) in self.count_all(&names).await? {
                total.topics += u64::from(exists);
                total.delayed += stats.delayed;
                total.ready += stats.ready;
                total.urgent += stats.urgent;
                total.counts.add(&stats.counts);
            }
            after = names.last().cloned();
            if names.len() < PAGE_MAX || after.is_none() {
                break;
            }
        }
        total.waiters = self.dispatcher.waiting.borrow().len() as u64;
        for index in 0..LOCK_PARTITIONS {
            let partition = self.dispatcher.lock_partition_at(index);
            total.locks += self.ask(&partition, lock::op_count(), |from| from.u64()).await?;
        }
        Ok(total)
    }

    /// A page of the topics that exist.
    pub(super) async fn topics(self, page: &Topics) -> Answer {
        page.check()?;
        let mut found = Vec::new();
        let mut after = page.after.clone();
        loop {
            let names = self.dispatcher.page(after.as_ref(), page.limit + 1).await?;
            for (name, counted) in self.count_all(&names).await? {
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
