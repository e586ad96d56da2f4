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

use super::ask;
use crate::codec::reserve::{Look, Rank};
use crate::dispatch::Desk;
use crate::dispatch::sessions::Held;
use crate::partition::waiter::Demand;
use crate::partition::{Ask, BatchNo, FLIGHT_JOBS_MAX, PATIENCE, Partition, silent};

pub(super) async fn reserve(
    desk: &Rc<Desk>,
    batch: BatchNo,
    ticket: Ticket,
    reserve: Reserve,
) -> Answer {
    let (ttr_ms, wait_ms) = reserve.check()?;
    if let Some(session) = reserve.session
        && !desk.sessions.borrow().is_open(session)
    {
        return Err(no_session(session));
    }
    let topics = reserve.distinct_topics();
    let known = topics.iter().filter_map(|name| desk.known(name));
    let partitions: Vec<_> = known.flat_map(|topic| topic.partitions.clone()).collect();
    if partitions.is_empty() {
        return Ok(Reply::Jobs(Vec::new()));
    }
    let demand = Demand::new(desk.next_demand(), batch, reserve.max, ttr_ms, wait_ms > 0);
    let wait = Wait { desk, ticket, wait_ms, session: reserve.session, demand: Rc::new(demand) };
    let jobs = wait.reserve(batch, &partitions).await?;
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
enum Known {
    Unasked,
    /// It gave all that was asked for.
    Asked,
    /// This is its next.
    Next(Rank),
    /// It has nothing.
    Empty,
}

/// A reserve in course.
struct Wait<'a> {
    desk: &'a Rc<Desk>,
    ticket: Ticket,
    wait_ms: u64,
    session: Option<SessionId>,
    demand: Rc<Demand>,
}

impl Wait<'_> {
    async fn reserve(
        &self,
        batch: BatchNo,
        partitions: &[Rc<Partition>],
    ) -> Result<Vec<LeasedJob>, Error> {
        if self.wait_ms > 0 {
            if self.desk.waiting.borrow().len() >= WAITERS_MAX {
                return Err(too_many_wait());
            }
            self.desk.waiting.borrow_mut().insert(self.ticket, Rc::clone(&self.demand));
            if let Some(session) = self.session {
                self.desk.sessions.borrow_mut().add_demand(session, &self.demand);
            }
        }
        let _leave = Leave { wait: self, partitions };
        if partitions.len() > 1 || self.demand.max > FLIGHT_JOBS_MAX {
            let jobs = self.collect(batch, partitions).await?;
            if self.demand.is_over() {
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
            if let Some(partition) = self.desk.partition_of(token.id) {
                partition.give_back(&[token]);
            }
        }
    }

    /// Takes from several partitions in order, as far as is known: whichever has the next job is
    /// asked, but only for what comes before the next job of all others. Nothing is answered only
    /// after all were asked.
    async fn collect(
        &self,
        batch: BatchNo,
        partitions: &[Rc<Partition>],
    ) -> Result<Vec<LeasedJob>, Error> {
        // Many jobs of one topic lie side by side in its partitions: in their exact order they
        // would come one by one, a round trip each.
        let in_order = self.demand.max == 1 || !is_one_topic(partitions);
        let (mut jobs, mut room) = (Vec::new(), REPLY_BYTES_MAX);
        let mut known = vec![Known::Unasked; partitions.len()];
        while jobs.len() < self.demand.max && room >= JOB_BYTES_MAX {
            let Some((index, bound)) = self.next(partitions, &known, jobs.is_empty()) else {
                break;
            };
            let bound = bound.filter(|_| in_order);
            let Some(partition) = partitions.get(index) else { break };
            let max = (self.demand.max - jobs.len()).min(FLIGHT_JOBS_MAX);
            let look = Look { max, ttr_ms: self.demand.ttr_ms, room, bound, waits: false };
            let seen = match ask(partition, batch, |to| Ask::Take { look, to }).await {
                Ok(seen) => seen,
                Err(error) if jobs.is_empty() => return Err(error),
                Err(_) => break,
            };
            if let Some(known) = known.get_mut(index) {
                // What it said just now is exact: a bound that it may be before, as that of a
                // lease that ended, would have it asked for ever for what comes before others.
                *known = match seen.next(self.desk.shared.clock.now_ms()) {
                    _ if seen.jobs.len() == max => Known::Asked,
                    Some(next) => Known::Next(next),
                    None => Known::Empty,
                };
            }
            room = room.saturating_sub(seen.jobs.iter().map(LeasedJob::bytes).sum());
            jobs.extend(seen.jobs);
        }
        Ok(jobs)
    }

    /// Whom to ask next, and for what comes before what.
    fn next(
        &self,
        partitions: &[Rc<Partition>],
        known: &[Known],
        nothing_yet: bool,
    ) -> Option<(usize, Option<Rank>)> {
        let now_ms = self.desk.shared.clock.now_ms();
        let mut ranks: Vec<(Rank, usize)> = Vec::new();
        for (index, (partition, known)) in partitions.iter().zip(known).enumerate() {
            let rank = match known {
                Known::Empty => None,
                Known::Next(rank) => Some(*rank),
                Known::Unasked | Known::Asked => partition.heads.borrow().first(now_ms),
            };
            ranks.extend(rank.map(|rank| (rank, index)));
        }
        ranks.sort_unstable();
        if let Some(&(_, index)) = ranks.first() {
            return Some((index, ranks.get(1).map(|&(rank, _)| rank)));
        }
        // Others may have put something where nothing is known to be.
        let unasked = known.iter().position(|known| *known == Known::Unasked)?;
        nothing_yet.then_some((unasked, None))
    }

    /// Those first that are known to have what comes first; the others take turns.
    fn in_order(&self, partitions: &[Rc<Partition>]) -> Vec<Rc<Partition>> {
        let (now_ms, count) = (self.desk.shared.clock.now_ms(), partitions.len().max(1));
        let turn = usize::try_from(self.demand.no).unwrap_or(0) % count;
        let mut ranked: Vec<_> = partitions.iter().enumerate().collect();
        ranked.sort_by_cached_key(|(index, partition)| {
            let rank = partition.heads.borrow().first(now_ms);
            (rank.is_none(), rank, (index + turn) % count)
        });
        ranked.into_iter().map(|(_, partition)| Rc::clone(partition)).collect()
    }

    /// Stands in line until there is a job or the wait is over.
    async fn park(&self, partitions: &[Rc<Partition>]) -> Result<Vec<LeasedJob>, Error> {
        let demand = &self.demand;
        demand.line_up(&self.in_order(partitions));
        if self.wait_ms == 0 {
            return demand.ended().await;
        }
        let over = self.desk.shared.clock.pass(self.wait_ms);
        let listen = async {
            // All are asked first: one node that is away must not keep the others unheard.
            partitions.iter().for_each(|partition| partition.subscribe());
            for partition in partitions {
                partition.listen().await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            jobs = demand.ended() => return jobs,
            () = over => {}
            () = listen => {}
        }
        self.last_look(partitions).await
    }

    /// A job that is due as the wait ends is given.
    async fn last_look(&self, partitions: &[Rc<Partition>]) -> Result<Vec<LeasedJob>, Error> {
        let demand = &self.demand;
        if timeout(PATIENCE, demand.unclaimed()).await.is_err() {
            demand.end();
            return Err(silent());
        }
        if demand.is_over() {
            return demand.ended().await;
        }
        demand.end();
        let _nothing = demand.ended().await;
        self.collect(self.desk.shared.next_batch(), partitions).await
    }

    /// Leases of a session that ended meanwhile are given back.
    fn keep_in_session(&self, mut jobs: Vec<LeasedJob>) -> Vec<LeasedJob> {
        let Some(session) = self.session else { return jobs };
        let now_ms = self.desk.shared.clock.now_ms();
        let mut sessions = self.desk.sessions.borrow_mut();
        let mut lost = Vec::new();
        jobs.retain(|job| {
            let kept = sessions.add(session, Held::of(job), now_ms);
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
struct Leave<'a, 'b> {
    wait: &'a Wait<'b>,
    partitions: &'a [Rc<Partition>],
}

impl Drop for Leave<'_, '_> {
    fn drop(&mut self) {
        for partition in self.partitions {
            partition.undemand(self.wait.demand.no);
        }
        self.wait.desk.waiting.borrow_mut().remove(&self.wait.ticket);
        if let Some(session) = self.wait.session {
            let no = self.wait.demand.no;
            self.wait.desk.sessions.borrow_mut().drop_demand(session, no);
        }
    }
}
