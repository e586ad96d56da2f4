//! reserve. From a single partition: a waiter is parked there, also for an immediate reserve. From
//! several: the partitions are polled one after the other, the one first that is known to have the
//! next job (`collect`); if none has a job and the reserve may wait, its waiter is parked at all of
//! them (`park`). At the end of the wait they are polled once more (`final_poll`).

use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;

use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::job::Token;
use dormouse_core::limits::{JOB_BYTES_MAX, REPLY_BYTES_MAX};
use dormouse_core::op::{LeasedJob, Reserve, SessionId};
use tokio::time::timeout;

use super::Fanout;
use crate::clock;
use crate::codec::reserve::{Bound, Poll, PollReply};
use crate::dispatch::Wait;
use crate::dispatch::sessions::SessionLease;
use crate::outbox::Caller;
use crate::partition::waiter::Waiter;
use crate::partition::{Partition, PartitionRequest};
use crate::scheduler::{BATCH_JOBS_MAX, NewWaiter, REPLY_TIMEOUT, Rank};

/// How long a poll waits before it asks whether other partitions are alive.
const AWAY_AFTER: Duration = Duration::from_millis(600);
/// How long jobs are collected after the first: leases of one answer begin together.
const COLLECT_TIME: Duration = Duration::from_millis(500);

impl Fanout<'_> {
    /// Starts a reserve without wait and session from a single partition: it needs no task.
    pub(super) fn reserve_plain(
        self,
        reserve: Reserve,
        caller: Caller,
    ) -> Option<(Command, Caller)> {
        let dispatcher = self.dispatcher;
        let topic = match &reserve.topics[..] {
            [name] => dispatcher.known(name),
            _ => None,
        };
        let partition = topic.as_ref().and_then(|topic| match &topic.partitions[..] {
            [partition] => Some(partition),
            _ => None,
        });
        let is_plain = reserve.wait_ms == 0 && reserve.session.is_none();
        let (Some(partition), true, Ok((ttr_ms, _))) =
            (partition, is_plain && reserve.max <= BATCH_JOBS_MAX, reserve.check())
        else {
            return Some((Command::Reserve(reserve), caller));
        };
        let submission = self.submission;
        let new = NewWaiter { max: reserve.max, ttr_ms, submission, is_blocking: false };
        let waiter = Waiter::new(&dispatcher.shared, dispatcher.next_waiter_no(), new);
        Rc::new(waiter.replying_to(caller)).park_at(std::slice::from_ref(partition));
        None
    }

    pub(super) async fn reserve(self, wait: Option<Rc<Wait>>, reserve: Reserve) -> Answer {
        let (ttr_ms, _) = reserve.check()?;
        let session = reserve.session;
        self.check_session(session)?;
        let topics = reserve.distinct_topics();
        let partitions: Vec<_> = topics.iter().flat_map(|name| self.partitions(name)).collect();
        if partitions.is_empty() {
            return Ok(Reply::Jobs(Vec::new()));
        }
        let no = self.dispatcher.next_waiter_no();
        let (submission, is_blocking) = (self.submission, wait.is_some());
        let new = NewWaiter { max: reserve.max, ttr_ms, submission, is_blocking };
        let waiter = Rc::new(Waiter::new(&self.dispatcher.shared, no, new));
        let pending = PendingReserve { fanout: self, wait, session, waiter, partitions };
        let jobs = pending.reserve().await?;
        Ok(Reply::Jobs(pending.keep_in_session(jobs)))
    }
}

fn no_partition() -> Error {
    Error::unavailable("the topic has no partition")
}

fn is_one_topic(partitions: &[Rc<Partition>]) -> bool {
    partitions.windows(2).all(|pair| match pair {
        [one, other] => one.topic == other.topic,
        _ => true,
    })
}

/// What `collect` knows of a partition.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Knowledge {
    Unpolled,
    /// It gave as many jobs as asked for, so it may have more.
    More,
    /// The rank of its next job.
    Next(Rank),
    /// It has no visible job.
    Empty,
    /// Redis does not answer about it.
    Away,
}

/// A reserve that is not yet answered.
struct PendingReserve<'a> {
    fanout: Fanout<'a>,
    /// `None` = it does not wait.
    wait: Option<Rc<Wait>>,
    session: Option<SessionId>,
    waiter: Rc<Waiter>,
    partitions: Vec<Rc<Partition>>,
}

impl PendingReserve<'_> {
    async fn reserve(&self) -> Result<Vec<LeasedJob>, Error> {
        let dispatcher = self.fanout.dispatcher;
        if let Some(wait) = &self.wait {
            wait.begin(&self.waiter)?;
            if self.waiter.is_done() {
                return Ok(Vec::new());
            }
            if let Some(session) = self.session {
                dispatcher.sessions.borrow_mut().add_waiter(session, &self.waiter);
            }
        }
        if self.partitions.len() > 1 || self.waiter.reserve.max > BATCH_JOBS_MAX {
            let jobs = self.collect(self.fanout).await?;
            if self.waiter.is_done() {
                // Withdrawn meanwhile.
                self.give_back(jobs.iter().map(|job| job.token));
                return Ok(Vec::new());
            }
            if !jobs.is_empty() || self.wait.is_none() {
                return Ok(jobs);
            }
        }
        self.park().await
    }

    fn now_ms(&self) -> u64 {
        self.fanout.dispatcher.shared.clock.now_ms()
    }

    fn give_back(&self, tokens: impl Iterator<Item = Token>) {
        for token in tokens {
            if let Some(partition) = self.fanout.dispatcher.partition_of(token.id) {
                partition.give_back(&[token]);
            }
        }
    }

    /// Reserves from several partitions in the order of ranks, as far as it is known: polls the one
    /// with the next job, for its jobs before the next job of all others, or for a fair share if
    /// those are fewer. The reply is empty only if all partitions were polled that Redis answers
    /// about.
    async fn collect(&self, fanout: Fanout<'_>) -> Result<Vec<LeasedJob>, Error> {
        // The order of jobs alternates between the partitions of a topic: many jobs in their exact
        // order would cost a round trip each.
        let in_order = self.waiter.reserve.max == 1 || !is_one_topic(&self.partitions);
        let (mut jobs, mut room, mut ends_at) = (Vec::new(), REPLY_BYTES_MAX, None);
        let mut known = vec![Knowledge::Unpolled; self.partitions.len()];
        while jobs.len() < self.waiter.reserve.max && room >= JOB_BYTES_MAX {
            if ends_at.is_some_and(|ends_at| clock::instant() > ends_at) {
                break;
            }
            let next =
                self.next_partition(&known, self.waiter.reserve.max - jobs.len(), jobs.is_empty());
            let Some((index, bound)) = next else { break };
            let bound = bound.filter(|_| in_order);
            let Some(partition) = self.partitions.get(index) else { break };
            let max = (self.waiter.reserve.max - jobs.len()).min(BATCH_JOBS_MAX);
            let poll = Poll { max, ttr_ms: self.waiter.reserve.ttr_ms, room, bound, waits: false };
            let request = |reply_to| PartitionRequest::Reserve { poll, reply_to };
            let reply =
                match self.poll_while_alive(partition, fanout.submit(partition, request)).await {
                    Ok(Some(reply)) => reply,
                    Ok(None) => {
                        if let Some(known) = known.get_mut(index) {
                            *known = Knowledge::Away;
                        }
                        continue;
                    }
                    Err(error) if jobs.is_empty() => return Err(error),
                    Err(_) => break,
                };
            if let Some(known) = known.get_mut(index) {
                // Its own reply, not `heads`: those may hold a lower bound only, as for an ended
                // lease, by which it would be polled for ever for jobs before the others'.
                *known = match reply.report.next(self.now_ms()) {
                    _ if reply.jobs.len() == max => Knowledge::More,
                    Some(next) => Knowledge::Next(next),
                    None => Knowledge::Empty,
                };
            }
            room = room.saturating_sub(reply.jobs.iter().map(LeasedJob::bytes).sum());
            if !reply.jobs.is_empty() {
                ends_at = ends_at.or_else(|| Some(clock::instant() + COLLECT_TIME));
            }
            // A lease that has ended meanwhile may have been granted again: the older is void.
            let again: HashSet<_> = reply.jobs.iter().map(|job| job.id).collect();
            jobs.retain(|job: &LeasedJob| !again.contains(&job.id));
            jobs.extend(reply.jobs);
        }
        jobs.sort_by_key(|job| (job.priority, job.due_at, job.id));
        Ok(jobs)
    }

    /// The reply to a poll; `None` = Redis does not answer about this partition, but about others.
    /// If it answers later, the jobs are given back.
    async fn poll_while_alive(
        &self,
        partition: &Rc<Partition>,
        reply: impl Future<Output = Result<PollReply, Error>>,
    ) -> Result<Option<PollReply>, Error> {
        let mut reply = std::pin::pin!(reply);
        loop {
            if let Ok(reply) = timeout(AWAY_AFTER, &mut reply).await {
                return reply.map(Some);
            }
            if partition.is_away() && !self.partitions.iter().all(|other| other.is_away()) {
                return Ok(None);
            }
        }
    }

    /// The partition to poll next, and how far it may go; `wanted` jobs are still wanted.
    fn next_partition(
        &self,
        known: &[Knowledge],
        wanted: usize,
        nothing_yet: bool,
    ) -> Option<(usize, Option<Bound>)> {
        let now_ms = self.now_ms();
        let all_away = self.partitions.iter().all(|partition| partition.is_away());
        let mut ranks: Vec<(Rank, usize)> = Vec::new();
        for (index, (partition, known)) in self.partitions.iter().zip(known).enumerate() {
            let rank = match known {
                Knowledge::Empty | Knowledge::Away => None,
                _ if partition.is_away() && !all_away => None,
                Knowledge::Next(rank) => Some(*rank),
                Knowledge::Unpolled | Knowledge::More => partition.first_visible(now_ms),
            };
            ranks.extend(rank.map(|rank| (rank, index)));
        }
        ranks.sort_unstable();
        if let Some(&(_, index)) = ranks.first() {
            let least = wanted.div_ceil(ranks.len());
            return Some((index, ranks.get(1).map(|&(before, _)| Bound { before, least })));
        }
        // Other servers may have put jobs where none is known.
        let is_next = |(known, partition): (&Knowledge, &Rc<Partition>)| {
            *known == Knowledge::Unpolled && (all_away || !partition.is_away())
        };
        let unpolled = known.iter().zip(&self.partitions).position(is_next)?;
        nothing_yet.then_some((unpolled, None))
    }

    /// The partitions by the rank of their next job; those without one rotate.
    fn by_rank(&self) -> Vec<Rc<Partition>> {
        let (now_ms, count) = (self.now_ms(), self.partitions.len().max(1));
        let turn = usize::try_from(self.waiter.no).unwrap_or(0) % count;
        let mut ranked: Vec<_> = self.partitions.iter().enumerate().collect();
        ranked.sort_by_cached_key(|(index, partition)| {
            let rank = partition.first_visible(now_ms);
            (rank.is_none(), rank, (index + turn) % count)
        });
        ranked.into_iter().map(|(_, partition)| Rc::clone(partition)).collect()
    }

    /// Waits for a job until the wait is over.
    async fn park(&self) -> Result<Vec<LeasedJob>, Error> {
        let waiter = &self.waiter;
        waiter.park_at(&self.by_rank());
        let Some(wait) = &self.wait else { return waiter.finished().await };
        let listen = async {
            // All at once: an unreachable node must not delay the others' subscriptions.
            self.partitions.iter().for_each(|partition| partition.subscribe());
            for partition in &self.partitions {
                partition.subscribed().await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            jobs = waiter.finished() => return jobs,
            () = wait.over() => {}
            () = listen => {}
        }
        self.final_poll().await
    }

    /// A job that becomes due as the wait ends is still reserved.
    async fn final_poll(&self) -> Result<Vec<LeasedJob>, Error> {
        let waiter = &self.waiter;
        if timeout(REPLY_TIMEOUT, waiter.poll_ended()).await.is_err() {
            waiter.finish();
            let partition = self.partitions.first();
            return Err(partition.map_or_else(no_partition, |partition| partition.timed_out()));
        }
        if waiter.is_done() {
            return waiter.finished().await;
        }
        // No partition may serve the waiter from here on, or it would get jobs twice.
        waiter.finish();
        let _nothing = waiter.finished().await;
        self.collect(Fanout { submission: None, ..self.fanout }).await
    }

    /// Adds the leases to the session; releases them if it has closed meanwhile.
    fn keep_in_session(&self, mut jobs: Vec<LeasedJob>) -> Vec<LeasedJob> {
        let Some(session) = self.session else { return jobs };
        let now_ms = self.now_ms();
        let mut sessions = self.fanout.dispatcher.sessions.borrow_mut();
        let mut lost = Vec::new();
        jobs.retain(|job| {
            let kept = sessions.add(session, SessionLease::of(job), now_ms);
            if !kept {
                lost.push(job.token);
            }
            kept
        });
        drop(sessions);
        self.give_back(lost.into_iter());
        jobs
    }
}

/// Unparks the waiter however the wait ends.
impl Drop for PendingReserve<'_> {
    fn drop(&mut self) {
        self.waiter.finish();
        if let Some(session) = self.session {
            let mut sessions = self.fanout.dispatcher.sessions.borrow_mut();
            sessions.remove_waiter(session, self.waiter.no);
        }
    }
}
