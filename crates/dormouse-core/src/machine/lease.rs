//! Leased jobs: they are resident, whole, until they end.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::compact_job::CompactJob;
use super::topics::Topic;
use super::{Death, Machine, Origin, Output, job_cost};
use crate::Map;
use crate::error::{Error, Fatal};
use crate::fact::{Cause, Destination, Fact};
use crate::holder::{HolderId, Holdings};
use crate::image::LeaseImage;
use crate::job::{Content, Job, JobId, Progress};
use crate::limits::{LEASED_BYTES_MAX, LEASED_JOBS_MAX};
use crate::op::SessionId;
use crate::place::{Class, Place};
use crate::refusal::{leases_full, leases_of_token_used, leases_of_topic_used};
use crate::share;
use crate::snapshot_map::SnapshotMap;
use crate::time::{Clock, Now};
use crate::timeline::{BatchNo, Timeline};
use crate::topic::TopicNo;

/// A job in a consumer's hands.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) topic: TopicNo,
    pub(crate) job: CompactJob,
    /// The batch that put the job: it may come back before that batch is durable.
    pub(crate) put_batch: BatchNo,
    pub(crate) ttr_ms: u64,
    /// It belongs to a session, of this process or (in a replay) of one that has ended.
    pub(crate) of_session: bool,
    pub(crate) session: Option<SessionId>,
    /// For whom it counts; `None` = for nobody.
    pub(crate) holder: Option<HolderId>,
    /// Steady; `u64::MAX` until `begin_lease`.
    pub(crate) expires_at: u64,
}

impl Lease {
    pub(crate) fn new(
        topic: TopicNo,
        job: Job,
        put_batch: BatchNo,
        ttr_ms: u64,
        of_session: bool,
    ) -> Lease {
        let (job, expires_at) = (CompactJob::new(job), u64::MAX);
        let (session, holder) = (None, None);
        Lease { topic, job, put_batch, ttr_ms, of_session, session, holder, expires_at }
    }

    /// The lease as a checkpoint has it.
    pub(crate) fn image(&self, id: JobId) -> LeaseImage {
        LeaseImage {
            topic: self.topic,
            job: self.job.to_job(id),
            ttr_ms: self.ttr_ms,
            session: self.of_session,
        }
    }
}

/// All leased jobs.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    jobs: SnapshotMap<JobId, Arc<Lease>>,
    /// By the steady instant they run out; those that have one.
    expiries: BTreeSet<(u64, JobId)>,
    /// By topic, for lists; those that have an instant at which they run out.
    by_topic: BTreeSet<(TopicNo, JobId)>,
    /// Keys of leased jobs that have not passed to newer ones.
    keys: SnapshotMap<(TopicNo, Bytes), JobId>,
    /// Jobs that a replay knew only by their id when they were leased.
    stubs: Vec<JobId>,
    /// Where the last release of a topic ended, if it did not reach the end.
    release_ends: Map<TopicNo, JobId>,
    bytes: u64,
}

impl Leases {
    pub(crate) fn get(&self, id: JobId) -> Option<&Lease> {
        self.jobs.get(&id).map(Arc::as_ref)
    }

    pub(crate) fn by_key(&self, topic: TopicNo, key: &Bytes) -> Option<JobId> {
        if self.keys.is_empty() {
            return None;
        }
        self.keys.get(&(topic, key.clone())).copied()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// No further job can be leased before others end.
    fn is_full(&self) -> bool {
        self.jobs.len() >= LEASED_JOBS_MAX || self.bytes >= LEASED_BYTES_MAX
    }

    /// Whether one who has leased so much may not lease a job more. How large that job is shows
    /// only when it is read, so it counts as a byte.
    fn is_share_used(&self, jobs: u64, bytes: u64) -> bool {
        let all_jobs = self.jobs.len() as u64;
        share::exceeds(jobs + 1, all_jobs + 1, LEASED_JOBS_MAX as u64)
            || share::exceeds(bytes + 1, self.bytes + 1, LEASED_BYTES_MAX)
    }

    pub(crate) fn next_expiry(&self) -> Option<u64> {
        self.expiries.first().map(|&(at, _)| at)
    }

    pub(crate) fn by_expiry(&self) -> impl Iterator<Item = JobId> {
        self.expiries.iter().map(|&(_, id)| id)
    }

    /// The leased jobs of a topic from this id on, ascending.
    pub(crate) fn of_topic(&self, topic: TopicNo, from: JobId) -> impl Iterator<Item = JobId> {
        let ids = (topic, from)..=(topic, JobId(u64::MAX));
        self.by_topic.range(ids).map(|&(_, id)| id)
    }

    pub(crate) fn note_release_end(&mut self, topic: TopicNo, next: JobId) {
        if next != JobId(0) {
            self.release_ends.insert(topic, next);
        }
    }

    /// Where the next release of a topic begins; also called when the topic is gone.
    pub(crate) fn take_release_end(&mut self, topic: TopicNo) -> JobId {
        self.release_ends.remove(&topic).unwrap_or(JobId(0))
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// All leases as they are now.
    pub(crate) fn snapshot(&mut self) -> SnapshotMap<JobId, Arc<Lease>> {
        self.jobs.snapshot()
    }

    /// The topic and group of each leased job that has a group, in no order.
    pub(super) fn groups(&self) -> impl Iterator<Item = (TopicNo, &Bytes)> {
        self.jobs.iter().filter_map(|(_, lease)| Some((lease.topic, lease.job.group()?)))
    }

    /// All ids, ascending.
    pub(crate) fn ids(&self) -> Vec<JobId> {
        let mut ids: Vec<_> = self.jobs.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Jobs of which a replay knew only the id.
    pub(crate) fn stubs(&self) -> Vec<JobId> {
        let is_stub = |id: &JobId| self.get(*id).is_some_and(|lease| lease.job.is_stub());
        let mut stubs: Vec<_> = self.stubs.iter().copied().filter(is_stub).collect();
        // A job may have been leased, given back and leased again.
        stubs.sort_unstable();
        stubs.dedup();
        stubs
    }

    /// A stub learns its content.
    pub(crate) fn complete(&mut self, id: JobId, content: Content) {
        if let Some(lease) = self.jobs.get_mut(&id) {
            Arc::make_mut(lease).job.complete(content);
        }
    }

    /// The job's key has passed to a newer job.
    pub(crate) fn lose_key(&mut self, id: JobId) {
        let Some(lease) = self.jobs.get_mut(&id).map(Arc::make_mut) else { return };
        if let Some(key) = lease.job.key() {
            self.keys.remove(&(lease.topic, key.clone()));
        }
        lease.job.lose_key();
    }

    /// After a replay, whose leases have no end yet: all of them last their full time from now.
    /// All at once, because a million entries one by one would make a start slow. Gives the ids of
    /// those that belong to sessions, ascending.
    pub(crate) fn begin_all(&mut self, now: Now) -> Vec<JobId> {
        self.stubs = Vec::new();
        // Replayed jobs may have learnt their keys only afterwards.
        self.keys = SnapshotMap::default();
        let mut expiries = Vec::with_capacity(self.jobs.len());
        let mut by_topic = Vec::with_capacity(self.jobs.len());
        let mut of_sessions = Vec::new();
        for (id, lease) in self.jobs.iter_mut() {
            let lease = Arc::make_mut(lease);
            lease.expires_at = now.after(lease.ttr_ms);
            expiries.push((lease.expires_at, *id));
            by_topic.push((lease.topic, *id));
            if let Some(key) = lease.job.key() {
                self.keys.insert((lease.topic, key.clone()), *id);
            }
            if lease.of_session {
                of_sessions.push(*id);
            }
        }
        self.expiries = expiries.into_iter().collect();
        self.by_topic = by_topic.into_iter().collect();
        of_sessions.sort_unstable();
        of_sessions
    }
}

impl<T: Timeline> Machine<T> {
    /// Applies: a job is leased. It runs out only once `begin_lease` says when.
    pub(crate) fn insert_lease(&mut self, id: JobId, lease: Lease) {
        let bytes = lease.job.bytes();
        if let Some(topic) = self.topics.get_mut(lease.topic) {
            topic.leased_bytes += bytes;
        }
        if let Some(key) = lease.job.key() {
            self.leases.keys.insert((lease.topic, key.clone()), id);
        }
        if lease.job.is_stub() {
            self.leases.stubs.push(id);
        }
        if let Some(group) = lease.job.group() {
            self.groups.add_lease(lease.topic, group);
        }
        self.leases.bytes += bytes;
        self.leases.jobs.insert(id, Arc::new(lease));
    }

    /// Applies: a leased job is leased no more.
    pub(crate) fn remove_lease(&mut self, id: JobId) -> Option<Lease> {
        let lease = Arc::unwrap_or_clone(self.leases.jobs.remove(&id)?);
        let bytes = lease.job.bytes();
        self.leases.bytes = self.leases.bytes.saturating_sub(bytes);
        self.holders.drop_lease(lease.holder, bytes);
        if lease.expires_at != u64::MAX {
            self.leases.expiries.remove(&(lease.expires_at, id));
            self.leases.by_topic.remove(&(lease.topic, id));
        }
        if let Some(topic) = self.topics.get_mut(lease.topic) {
            topic.leased_bytes = topic.leased_bytes.saturating_sub(bytes);
        }
        if let Some(key) = lease.job.key() {
            self.leases.keys.remove(&(lease.topic, key.clone()));
        }
        if let Some(session) = lease.session {
            self.sessions.drop_lease(session, id);
        }
        if let Some(group) = lease.job.group() {
            self.groups.drop_lease(lease.topic, group);
        }
        Some(lease)
    }

    /// Says until when a lease lasts and whose it is. A lease that counts for somebody stays so.
    pub(crate) fn begin_lease(
        &mut self,
        id: JobId,
        expires_at: u64,
        session: Option<SessionId>,
        holder: Option<HolderId>,
    ) {
        let Some(lease) = self.leases.jobs.get_mut(&id).map(Arc::make_mut) else { return };
        if lease.expires_at == u64::MAX {
            self.leases.by_topic.insert((lease.topic, id));
        } else {
            self.leases.expiries.remove(&(lease.expires_at, id));
        }
        self.leases.expiries.insert((expires_at, id));
        lease.expires_at = expires_at;
        lease.session = session;
        if lease.holder.is_none()
            && let Some(holder) = holder
        {
            lease.holder = Some(holder);
            self.holders.add_lease(holder, lease.job.bytes());
        }
        if let Some(session) = session {
            self.sessions.add_lease(session, id);
        }
    }

    /// Returns the jobs whose lease ran out. Their tokens stay good until the jobs are taken again.
    pub(crate) fn expire_leases(
        &mut self,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        while let Some(&(at, id)) = self.leases.expiries.first()
            && at <= now.steady_ms
            && *budget > 0
        {
            let bytes = self.leases.get(id).map_or(0, |lease| lease.job.bytes());
            *budget = budget.saturating_sub(job_cost(bytes));
            self.expire(now, id, out)?;
        }
        Ok(())
    }

    fn expire(&mut self, now: Now, id: JobId, out: &mut Output) -> Result<(), Fatal> {
        let Some(lease) = self.leases.get(id) else { return Ok(()) };
        let (topic, expires_at) = (lease.topic, lease.expires_at);
        let spent = lease.job.attempts_spent();
        let mut progress = lease.job.progress();
        progress.expiries = progress.expiries.saturating_add(1);
        if spent {
            progress.error = Some(Bytes::from_static(b"lease expired"));
            let place = bury(topic, id, now, &mut progress);
            let death = Death { left: None, place, progress, cause: Cause::Expiry };
            return self.die(now, death, Origin::Live, out);
        }
        progress.lapsed = true;
        let class = Class::waiting(progress.priority, Clock::Steady);
        let place = Place { topic, class, due_at: expires_at, id };
        self.end_lease(topic, id, Destination::Rest(place), progress, Cause::Expiry, out);
        Ok(())
    }

    /// Decides that a leased job goes somewhere else.
    pub(crate) fn end_lease(
        &mut self,
        topic: TopicNo,
        id: JobId,
        to: Destination,
        progress: Progress,
        cause: Cause,
        out: &mut Output,
    ) {
        let fact = Fact::Move { id, topic, left: None, to, progress, key: None, cause };
        self.commit(fact, Origin::Live, out);
    }

    /// Whether this holder can lease a job of this topic now.
    pub(crate) fn has_lease_room(&self, topic: TopicNo, holder: Option<HolderId>) -> bool {
        let Holdings { jobs, bytes, .. } = self.holders.of(holder);
        !self.leases.is_full()
            && !self.topics.get(topic).is_some_and(|one| self.is_topic_share_used(one))
            && !self.leases.is_share_used(jobs, bytes)
    }

    fn is_topic_share_used(&self, topic: &Topic) -> bool {
        self.leases.is_share_used(topic.counts.leased, topic.leased_bytes)
    }

    /// The answer to a reserve without such room.
    pub(crate) fn no_lease_room(&self, topic: TopicNo, holder: Option<HolderId>) -> Error {
        if self.leases.is_full() {
            return leases_full(self.leases.len(), self.leases.bytes());
        }
        match self.topics.get(topic) {
            Some(one) if self.is_topic_share_used(one) => {
                leases_of_topic_used(&one.name, one.counts.leased, one.leased_bytes)
            }
            _ => leases_of_token_used(self.holders.of(holder)),
        }
    }
}

/// The place of a job that dies now; its progress learns of it.
pub(crate) fn bury(topic: TopicNo, id: JobId, now: Now, progress: &mut Progress) -> Place {
    progress.kills = progress.kills.saturating_add(1);
    progress.lapsed = false;
    Place { topic, class: Class::DEAD, due_at: now.steady_ms, id }
}
