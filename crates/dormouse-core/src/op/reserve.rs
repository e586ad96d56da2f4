//! reserve: take jobs that are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use bytes::Bytes;

use crate::Set;
use crate::backend::Ticket;
use crate::command::{Command, Reply, operation};
use crate::error::{Error, Fatal};
use crate::fact::{Cause, Destination, Fact};
use crate::holder::HolderId;
use crate::job::{BodyKind, JobId, TickOrigin, Token, content_bytes};
use crate::limits::{
    JOB_BYTES_MAX, PORTION_JOBS, REPLY_BYTES_MAX, RESERVE_MAX, RESERVE_TOPICS_MAX, WAIT_MS_MAX,
};
use crate::machine::{Machine, Origin, Output, ReserveTerms, Rule, Stop, When, answered};
use crate::op::{SessionId, check};
use crate::refusal::{no_session, too_many_wait};
use crate::time::{Clock, Now};
use crate::timeline::{Next, Resting, Timeline};
use crate::topic::{TopicName, TopicNo};

/// Take up to `max` jobs of these topics; wait if there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Where from; order over all: priority, longest overdue, id.
    pub topics: Vec<TopicName>,
    /// Most jobs to take.
    pub max: usize,
    /// How long to wait for the first; 0 = answer at once.
    pub wait_ms: i64,
    /// Lease time instead of each job's own.
    pub ttr_ms: Option<i64>,
    /// The leases end with this session.
    pub session: Option<SessionId>,
}

impl Reserve {
    /// Checks all limits; gives ttr and wait.
    pub fn check(&self) -> Result<(Option<u64>, u64), Error> {
        if !(1..=RESERVE_TOPICS_MAX).contains(&self.topics.len()) {
            return Err(Error::invalid(format!(
                "reserve names {} topics; name 1 to {RESERVE_TOPICS_MAX}",
                self.topics.len()
            )));
        }
        if !(1..=RESERVE_MAX).contains(&self.max) {
            return Err(Error::invalid(format!(
                "max is {} jobs; give 1 to {RESERVE_MAX}",
                self.max
            )));
        }
        let wait_ms = check::span("wait", self.wait_ms, 0, WAIT_MS_MAX)?;
        Ok((check::ttr(self.ttr_ms)?, wait_ms))
    }

    /// The topics without repetitions, in their order.
    pub fn distinct_topics(&self) -> Vec<TopicName> {
        let mut seen = Set::default();
        let names = self.topics.iter();
        names.filter(|name| self.topics.len() == 1 || seen.insert(*name)).cloned().collect()
    }
}

/// A job in a consumer's hands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedJob {
    /// Its topic.
    pub topic: TopicName,
    /// Its number.
    pub id: JobId,
    /// The producer's own id.
    pub key: Option<Bytes>,
    /// Proof of this hold.
    pub token: Token,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// When it was due, wall ms.
    pub due_at: u64,
    /// When it was put, wall ms.
    pub put_at: u64,
    /// How long after its due time it was handed out.
    pub late_ms: u64,
    /// When the lease runs out, wall ms.
    pub expires_at: u64,
    /// The lease's length.
    pub ttr_ms: u64,
    /// Lower is first.
    pub priority: u32,
    /// Small string map.
    pub headers: Option<Arc<Vec<(String, String)>>>,
    /// The work.
    pub body: Bytes,
    /// The form in which the body was put.
    pub body_kind: BodyKind,
    /// The tick that put it, if one did.
    pub tick: Option<Arc<TickOrigin>>,
    /// What limits of groups are counted by.
    pub group: Option<Bytes>,
    /// It dies if nobody takes it so long after it was due; 0 = it never does.
    pub expires_after_ms: u64,
}

impl LeasedJob {
    /// Bytes of the job against byte limits: body, key, group and headers.
    pub fn bytes(&self) -> u64 {
        content_bytes(&self.body, [&self.key, &self.group], self.headers.as_deref())
    }
}

operation! {
    Reserve => Vec<LeasedJob>,
        request => Command::Reserve(request), Reply::Jobs(reply) => Ok(reply);
}

/// The outcome of a look at topics.
#[derive(Default)]
pub(crate) struct ReserveOutcome {
    pub(crate) jobs: Vec<LeasedJob>,
    /// A topic is still passing cancelled jobs: it may have more to give.
    pub(crate) is_unsure: bool,
    /// The head of a topic has still to be read: nothing was taken, because it may come first.
    pub(crate) is_unread: bool,
    /// So many jobs at the head were too late, or their groups had no room.
    pub(crate) passed: usize,
}

impl<T: Timeline> Machine<T> {
    /// Answers at once, or lets the request wait.
    pub(crate) fn reserve(
        &mut self,
        now: Now,
        ticket: Ticket,
        holder: Option<HolderId>,
        reserve: &Reserve,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        let answer = answered(self.try_reserve(now, ticket, holder, reserve, out))?;
        if let Some(answer) = answer.transpose() {
            out.answers.push((ticket, answer.map(Reply::Jobs), When::Prompt));
        }
        Ok(())
    }

    /// Gives no jobs if the request waits.
    fn try_reserve(
        &mut self,
        now: Now,
        ticket: Ticket,
        holder: Option<HolderId>,
        reserve: &Reserve,
        out: &mut Output,
    ) -> Rule<Option<Vec<LeasedJob>>> {
        let (terms, wait_ms) = self.check_reserve(holder, reserve)?;
        let names = reserve.distinct_topics();
        if self.groups.has_listed() {
            let mut budget = std::mem::take(&mut self.step_budget);
            let looked = self.look_at_groups(now, &mut budget, out);
            self.step_budget = budget;
            looked?;
        }
        // Requests that wait already came first.
        if names.iter().any(|name| self.waiters.is_watched(name)) {
            let mut budget = std::mem::take(&mut self.step_budget);
            let served = self.serve_waiters(now, &mut budget, out);
            self.step_budget = budget;
            served?;
        }
        // A topic that has still to be looked at for those who wait has nothing for a newcomer.
        let (unsure, names_now): (Vec<_>, Vec<_>) =
            names.iter().partition(|name| self.waiters.is_unlooked(name, now));
        let topics: Vec<_> = names_now.iter().filter_map(|name| self.topics.find(name)).collect();
        let outcome = match self.reserve_now(now, &topics, terms, true, out) {
            Err(Stop::Refused(_)) if !unsure.is_empty() => ReserveOutcome::default(),
            outcome => outcome?,
        };
        let ReserveOutcome { jobs, is_unsure, is_unread, .. } = outcome;
        let is_unsure = is_unsure || is_unread || !unsure.is_empty();
        if !jobs.is_empty() || (wait_ms == 0 && !is_unsure) {
            return Ok(Some(jobs));
        }
        if self.waiters.is_full() {
            return Err(too_many_wait().into());
        }
        self.park_reserve(ticket, now.after(wait_ms), &names, terms);
        Ok(None)
    }

    fn check_reserve(
        &self,
        holder: Option<HolderId>,
        reserve: &Reserve,
    ) -> Result<(ReserveTerms, u64), Error> {
        let (ttr_ms, wait_ms) = reserve.check()?;
        let &Reserve { max, session, .. } = reserve;
        self.check_session(session)?;
        Ok((ReserveTerms { max, ttr_ms, session, holder }, wait_ms))
    }

    pub(crate) fn check_session(&self, session: Option<SessionId>) -> Result<(), Error> {
        match session {
            Some(session) if !self.sessions.is_open(session) => Err(no_session(session)),
            _ => Ok(()),
        }
    }

    /// Leases due jobs of these topics: by priority, then longest overdue, then id. If it is
    /// patient, it takes nothing before the heads of all topics are read.
    pub(crate) fn reserve_now(
        &mut self,
        now: Now,
        topics: &[TopicNo],
        terms: ReserveTerms,
        is_patient: bool,
        out: &mut Output,
    ) -> Rule<ReserveOutcome> {
        let mut heads = BinaryHeap::with_capacity(topics.len());
        let mut is_unsure = false;
        for &topic in topics {
            match self.offer(topic, now)? {
                Next::Due(place) => heads.push(Reverse((place.rank(now), place))),
                Next::Unread if is_patient => {
                    return Ok(ReserveOutcome {
                        is_unsure: true,
                        is_unread: true,
                        ..Default::default()
                    });
                }
                Next::Again | Next::Unread => is_unsure = true,
                Next::In(_) | Next::Empty => self.note_empty_line(topic, now),
                Next::Blocked => {}
            }
        }
        let (mut jobs, mut bytes, mut refused) = (Vec::new(), 0, None);
        let (mut too_late, mut parked) = (0, 0);
        while let Some(Reverse((_, place))) = heads.pop() {
            if !self.has_lease_room(place.topic, terms.holder) {
                // Other topics may have room.
                refused.get_or_insert(place.topic);
                continue;
            }
            if jobs.is_empty() {
                // Growing step by step would copy every job once more.
                jobs.reserve_exact(self.reserve_room(topics, terms.max));
            }
            let resting = self.timeline.take(place)?;
            if resting.is_too_late(now) {
                self.die_too_late(resting, true, now, out)?;
                too_late += 1;
            } else if let Some(resting) = self.park_if_held(resting, now, out) {
                bytes += u64::from(resting.job.progress.bytes);
                jobs.extend(self.grant(now, resting, true, terms, out)?);
            } else {
                parked += 1;
            }
            if too_late + parked == PORTION_JOBS {
                break;
            }
            if jobs.len() >= terms.max || bytes + JOB_BYTES_MAX > REPLY_BYTES_MAX {
                break;
            }
            match self.offer(place.topic, now)? {
                Next::Due(place) => heads.push(Reverse((place.rank(now), place))),
                Next::Again | Next::Unread => is_unsure = true,
                Next::In(_) | Next::Blocked | Next::Empty => {}
            }
        }
        let passed = too_late + parked;
        if jobs.is_empty() && (too_late > 0 || passed == PORTION_JOBS) {
            // What looked due is dead, or there may be others behind: look again.
            return Ok(ReserveOutcome { jobs, is_unsure: true, is_unread: true, passed });
        }
        match refused {
            // Another topic may have jobs, and room for them.
            Some(_) if jobs.is_empty() && is_unsure && is_patient => {
                Ok(ReserveOutcome { jobs, is_unsure, is_unread: true, passed })
            }
            Some(topic) if jobs.is_empty() => Err(self.no_lease_room(topic, terms.holder).into()),
            _ => Ok(ReserveOutcome { jobs, is_unsure, is_unread: false, passed }),
        }
    }

    /// How many jobs a reserve can give at most.
    fn reserve_room(&self, topics: &[TopicNo], max: usize) -> usize {
        let waiting = |topic: &TopicNo| self.topics.get(*topic).map_or(0, |one| one.counts.waiting);
        let waiting: u64 = topics.iter().map(waiting).sum();
        max.min(usize::try_from(waiting).unwrap_or(max))
    }

    /// Leases a resting job. `taken` says that it has left the timeline already.
    pub(crate) fn grant(
        &mut self,
        now: Now,
        resting: Resting,
        taken: bool,
        terms: ReserveTerms,
        out: &mut Output,
    ) -> Result<Option<LeasedJob>, Fatal> {
        let (place, job) = (resting.place, &resting.job);
        let fence = self.next_fence();
        let Some(topic) = self.topics.get(place.topic) else { return Ok(None) };
        let ttr_ms = terms.ttr_ms.unwrap_or(job.content.ttr_ms);
        let expires_at = now.after(ttr_ms);
        let mut progress = job.progress.clone();
        progress.fence = fence;
        progress.lapsed = false;
        progress.attempts = progress.attempts.saturating_add(1);
        progress.reserves = progress.reserves.saturating_add(1);
        let leased = LeasedJob {
            topic: topic.name.clone(),
            id: job.id,
            key: job.key().cloned(),
            token: Token { id: job.id, fence: progress.fence },
            attempt: progress.attempts,
            due_at: place.due_wall_ms(now),
            put_at: job.content.put_at,
            late_ms: place.overdue_ms(now),
            expires_at: now.to_wall(Clock::Steady, expires_at),
            ttr_ms,
            priority: progress.priority,
            headers: job.content.headers.clone(),
            body: job.content.body.clone(),
            body_kind: job.content.body_kind,
            tick: job.content.tick.clone(),
            group: job.content.group.clone(),
            expires_after_ms: job.content.expires_after_ms,
        };
        let fact = Fact::Move {
            id: place.id,
            topic: place.topic,
            left: Some(place),
            to: Destination::Leased { ttr_ms, session: terms.session.is_some() },
            progress,
            key: None,
            cause: Cause::Reserve,
        };
        let origin = if taken { Origin::Taken(resting) } else { Origin::Found(resting) };
        self.commit(fact, origin, out);
        self.begin_lease(place.id, expires_at, terms.session, terms.holder);
        self.spend(place.topic, leased.group.as_ref(), now, out)?;
        Ok(Some(leased))
    }
}
