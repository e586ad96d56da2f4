//! reserve: from one partition by standing in its line; from several one after the other, those
//! first that are known to have what is to be given next.

use std::rc::Rc;

use dormouse_core::backend::{Answer, Ticket};
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::job::Token;
use dormouse_core::limits::{JOB_BYTES_MAX, REPLY_BYTES_MAX, WAITERS_MAX};
use dormouse_core::op::{LeasedJob, Reserve, SessionId};
use dormouse_core::refusal::{no_session, too_many_wait};

use tokio::time::timeout;

use super::submit;
use crate::codec::reserve::{Poll, Rank};
use crate::dispatch::Dispatcher;
use crate::dispatch::sessions::SessionLease;
use crate::partition::waiter::Waiter;
use crate::partition::{
    BATCH_JOBS_MAX, Partition, PartitionRequest, REPLY_TIMEOUT, SubmissionNo, timed_out,
};

pub(super) async fn reserve(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    ticket: Ticket,
    reserve: Reserve,
) -> Answer {
    let (ttr_ms, wait_ms) = reserve.check()?;
    if let Some(session) = reserve.session
        && !dispatcher.sessions.borrow().is_open(session)
    {
        return Err(no_session(session));
    }
    let topics = reserve.distinct_topics();
    let known = topics.iter().filter_map(|name| dispatcher.known(name));
    let partitions: Vec<_> = known.flat_map(|topic| topic.partitions.clone()).collect();
    if partitions.is_empty() {
        return Ok(Reply::Jobs(Vec::new()));
    }
    let waiter =
        Waiter::new(dispatcher.next_waiter_no(), submission, reserve.max, ttr_ms, wait_ms > 0);
    let wait = PendingReserve {
        dispatcher,
        ticket,
        wait_ms,
        session: reserve.session,
        waiter: Rc::new(waiter),
    };
    let jobs = wait.reserve(submission, &partitions).await?;
    let jobs = wait.keep_in_session(jobs);
    Ok(Reply::Jobs(jobs))
}

fn is_one_topic(partitions: &[Rc<Partition>]) -> bool {
    partitions.windows(2).all(|pair| match pair {
        [one, other] => one.topic == other.topic,
        _ => true,
    })
}

/// What a reserve knows of a partition that it asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Knowledge {
    Unpolled,
    /// It gave all that was asked for.
    More,
    /// This is its next.
    Next(Rank),
    /// It has nothing.
    Empty,
}

/// A reserve in course.
struct PendingReserve<'a> {
    dispatcher: &'a Rc<Dispatcher>,
    ticket: Ticket,
    wait_ms: u64,
    session: Option<SessionId>,
    waiter: Rc<Waiter>,
}

impl PendingReserve<'_> {
    async fn reserve(
        &self,
        submission: SubmissionNo,
        partitions: &[Rc<Partition>],
    ) -> Result<Vec<LeasedJob>, Error> {
        if self.wait_ms > 0 {
            if self.dispatcher.waiting.borrow().len() >= WAITERS_MAX {
                return Err(too_many_wait());
            }
            self.dispatcher.waiting.borrow_mut().insert(self.ticket, Rc::clone(&self.waiter));
            if let Some(session) = self.session {
                self.dispatcher.sessions.borrow_mut().add_waiter(session, &self.waiter);
            }
        }
        let _guard = WaitGuard { wait: self, partitions };
        if partitions.len() > 1 || self.waiter.max > BATCH_JOBS_MAX {
            let jobs = self.collect(submission, partitions).await?;
            if self.waiter.is_done() {
                // It was withdrawn meanwhile.
                self.give_back(jobs.iter().map(|job| job.token));
                return Ok(Vec::new());
            }
            if !jobs.is_empty() || self.wait_ms == 0 {
                return Ok(jobs);
            }
        }
        self.park(partitions).await
    }

    fn give_back(&self, tokens: impl Iterator<Item = Token>) {
        for token in tokens {
            if let Some(partition) = self.dispatcher.partition_of(token.id) {
                partition.give_back(&[token]);
            }
        }
    }

    /// Takes from several partitions in order, as far as is known: whichever has the next job is
    /// asked, but only for what comes before the next job of all others. Nothing is answered only
    /// after all were asked.
    async fn collect(
        &self,
        submission: SubmissionNo,
        partitions: &[Rc<Partition>],
    ) -> Result<Vec<LeasedJob>, Error> {
        // Many jobs of one topic lie side by side in its partitions: in their exact order they
        // would come one by one, a round trip each.
        let in_order = self.waiter.max == 1 || !is_one_topic(partitions);
        let (mut jobs, mut room) = (Vec::new(), REPLY_BYTES_MAX);
        let mut known = vec![Knowledge::Unpolled; partitions.len()];
        while jobs.len() < self.waiter.max && room >= JOB_BYTES_MAX {
            let Some((index, bound)) = self.next_partition(partitions, &known, jobs.is_empty())
            else {
                break;
            };
            let bound = bound.filter(|_| in_order);
            let Some(partition) = partitions.get(index) else { break };
            let max = (self.waiter.max - jobs.len()).min(BATCH_JOBS_MAX);
            let poll = Poll { max, ttr_ms: self.waiter.ttr_ms, room, bound, waits: false };
            let reply = match submit(partition, submission, |reply_to| PartitionRequest::Reserve {
                poll,
                reply_to,
            })
            .await
            {
                Ok(reply) => reply,
                Err(error) if jobs.is_empty() => return Err(error),
                Err(_) => break,
            };
            if let Some(known) = known.get_mut(index) {
                // What it said just now is exact: a bound that it may be before, as that of a
                // lease that ended, would have it asked for ever for what comes before others.
                *known = match reply.next(self.dispatcher.shared.clock.now_ms()) {
                    _ if reply.jobs.len() == max => Knowledge::More,
                    Some(next) => Knowledge::Next(next),
                    None => Knowledge::Empty,
                };
            }
            room = room.saturating_sub(reply.jobs.iter().map(LeasedJob::bytes).sum());
            jobs.extend(reply.jobs);
        }
        Ok(jobs)
    }

    /// Whom to ask next, and for what comes before what.
    fn next_partition(
        &self,
        partitions: &[Rc<Partition>],
        known: &[Knowledge],
        nothing_yet: bool,
    ) -> Option<(usize, Option<Rank>)> {
        let now_ms = self.dispatcher.shared.clock.now_ms();
        let mut ranks: Vec<(Rank, usize)> = Vec::new();
        for (index, (partition, known)) in partitions.iter().zip(known).enumerate() {
            let rank = match known {
                Knowledge::Empty => None,
                Knowledge::Next(rank) => Some(*rank),
                Knowledge::Unpolled | Knowledge::More => {
                    partition.heads.borrow().first_visible(now_ms)
                }
            };
            ranks.extend(rank.map(|rank| (rank, index)));
        }
        ranks.sort_unstable();
        if let Some(&(_, index)) = ranks.first() {
            return Some((index, ranks.get(1).map(|&(rank, _)| rank)));
        }
        // Others may have put something where nothing is known to be.
        let unpolled = known.iter().position(|known| *known == Knowledge::Unpolled)?;
        nothing_yet.then_some((unpolled, None))
    }

    /// Those first that are known to have what comes first; the others take turns.
    fn by_rank(&self, partitions: &[Rc<Partition>]) -> Vec<Rc<Partition>> {
        let (now_ms, count) = (self.dispatcher.shared.clock.now_ms(), partitions.len().max(1));
        let turn = usize::try_from(self.waiter.no).unwrap_or(0) % count;
        let mut ranked: Vec<_> = partitions.iter().enumerate().collect();
        ranked.sort_by_cached_key(|(index, partition)| {
            let rank = partition.heads.borrow().first_visible(now_ms);
            (rank.is_none(), rank, (index + turn) % count)
        });
        ranked.into_iter().map(|(_, partition)| Rc::clone(partition)).collect()
    }

    /// Stands in line until there is a job or the wait is over.
    async fn park(&self, partitions: &[Rc<Partition>]) -> Result<Vec<LeasedJob>, Error> {
        let waiter = &self.waiter;
        waiter.park_at(&self.by_rank(partitions));
        if self.wait_ms == 0 {
            return waiter.finished().await;
        }
        let over = self.dispatcher.shared.clock.sleep(self.wait_ms);
        let listen = async {
            // All are asked first: one node that is away must not keep the others unheard.
            partitions.iter().for_each(|partition| partition.subscribe());
            for partition in partitions {
                partition.subscribed().await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            jobs = waiter.finished() => return jobs,
            () = over => {}
            () = listen => {}
        }
        self.final_poll(partitions).await
    }

    /// A job that is due as the wait ends is given.
    async fn final_poll(&self, partitions: &[Rc<Partition>]) -> Result<Vec<LeasedJob>, Error> {
        let waiter = &self.waiter;
        if timeout(REPLY_TIMEOUT, waiter.poll_ended()).await.is_err() {
            waiter.finish();
            return Err(timed_out());
        }
        if waiter.is_done() {
            return waiter.finished().await;
        }
        waiter.finish();
        let _nothing = waiter.finished().await;
        self.collect(self.dispatcher.shared.next_submission_no(), partitions).await
    }

    /// Leases of a session that ended meanwhile are given back.
    fn keep_in_session(&self, mut jobs: Vec<LeasedJob>) -> Vec<LeasedJob> {
        let Some(session) = self.session else { return jobs };
        let now_ms = self.dispatcher.shared.clock.now_ms();
        let mut sessions = self.dispatcher.sessions.borrow_mut();
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

/// Whatever ends the wait, the demand leaves all lines.
struct WaitGuard<'a, 'b> {
    wait: &'a PendingReserve<'b>,
    partitions: &'a [Rc<Partition>],
}

impl Drop for WaitGuard<'_, '_> {
    fn drop(&mut self) {
        for partition in self.partitions {
            partition.unpark(self.wait.waiter.no);
        }
        self.wait.dispatcher.waiting.borrow_mut().remove(&self.wait.ticket);
        if let Some(session) = self.wait.session {
            let no = self.wait.waiter.no;
            self.wait.dispatcher.sessions.borrow_mut().remove_waiter(session, no);
        }
    }
}
