//! A leased job as it is kept: less than half as large as a [`Job`], because there may be a
//! million.

use std::sync::Arc;

use bytes::Bytes;

use crate::backoff::Backoff;
use crate::job::{BodyKind, Content, Job, JobId, Progress, TickOrigin};

/// A job without its id.
#[derive(Clone, Debug)]
pub(crate) struct CompactJob {
    body: Bytes,
    ttr_ms: u64,
    put_at: u64,
    fence: u64,
    priority: u32,
    attempts_max: u32,
    attempts: u32,
    reserves: u32,
    bytes: u32,
    body_kind: BodyKind,
    lapsed: bool,
    key_lost: bool,
    /// `None` = all have their defaults.
    rare: Option<Box<RareFields>>,
}

/// Fields that most jobs do not have.
#[derive(Clone, Debug, Default, PartialEq)]
struct RareFields {
    key: Option<Bytes>,
    headers: Option<Arc<Vec<(String, String)>>>,
    backoff: Option<Arc<Backoff>>,
    key_ttl_ms: u64,
    expires_after_ms: u64,
    tick: Option<Arc<TickOrigin>>,
    group: Option<Bytes>,
    expiries: u32,
    releases: u32,
    kills: u32,
    kicks: u32,
    error: Option<Bytes>,
}

impl CompactJob {
    pub(crate) fn new(job: Job) -> CompactJob {
        let Job { id: _, content, progress } = job;
        let Content {
            key,
            headers,
            body,
            body_kind,
            ttr_ms,
            attempts_max,
            backoff,
            key_ttl_ms,
            expires_after_ms,
            put_at,
            tick,
            group,
        } = content;
        let Progress {
            priority,
            fence,
            lapsed,
            key_lost,
            attempts,
            reserves,
            expiries,
            releases,
            kills,
            kicks,
            bytes,
            error,
        } = progress;
        let rare = RareFields {
            key,
            headers,
            backoff,
            key_ttl_ms,
            expires_after_ms,
            tick,
            group,
            expiries,
            releases,
            kills,
            kicks,
            error,
        };
        CompactJob {
            body,
            ttr_ms,
            put_at,
            fence,
            priority,
            attempts_max,
            attempts,
            reserves,
            bytes,
            body_kind,
            lapsed,
            key_lost,
            rare: (rare != RareFields::default()).then(|| Box::new(rare)),
        }
    }

    /// The job, whole.
    pub(crate) fn to_job(&self, id: JobId) -> Job {
        let rare = self.rare.as_deref();
        let content = Content {
            key: rare.and_then(|rare| rare.key.clone()),
            headers: rare.and_then(|rare| rare.headers.clone()),
            body: self.body.clone(),
            body_kind: self.body_kind,
            ttr_ms: self.ttr_ms,
            attempts_max: self.attempts_max,
            backoff: rare.and_then(|rare| rare.backoff.clone()),
            key_ttl_ms: rare.map_or(0, |rare| rare.key_ttl_ms),
            expires_after_ms: rare.map_or(0, |rare| rare.expires_after_ms),
            put_at: self.put_at,
            tick: rare.and_then(|rare| rare.tick.clone()),
            group: rare.and_then(|rare| rare.group.clone()),
        };
        Job { id, content, progress: self.progress() }
    }

    /// Its progress.
    pub(crate) fn progress(&self) -> Progress {
        let rare = self.rare.as_deref();
        let number = |field: fn(&RareFields) -> u32| rare.map_or(0, field);
        Progress {
            priority: self.priority,
            fence: self.fence,
            lapsed: self.lapsed,
            key_lost: self.key_lost,
            attempts: self.attempts,
            reserves: self.reserves,
            expiries: number(|rare| rare.expiries),
            releases: number(|rare| rare.releases),
            kills: number(|rare| rare.kills),
            kicks: number(|rare| rare.kicks),
            bytes: self.bytes,
            error: rare.and_then(|rare| rare.error.clone()),
        }
    }

    /// The fence of its lease.
    pub(crate) fn fence(&self) -> u64 {
        self.fence
    }

    /// Its bytes against byte limits.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.bytes)
    }

    /// The key, unless it has passed to a newer job.
    pub(crate) fn key(&self) -> Option<&Bytes> {
        if self.key_lost { None } else { self.rare.as_ref()?.key.as_ref() }
    }

    /// How long its key stays taken after the ack.
    pub(crate) fn key_ttl_ms(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.key_ttl_ms)
    }

    /// The tick that put it, if one did.
    pub(crate) fn tick(&self) -> Option<&TickOrigin> {
        self.rare.as_ref()?.tick.as_deref()
    }

    /// What limits of groups are counted by.
    pub(crate) fn group(&self) -> Option<&Bytes> {
        self.rare.as_ref()?.group.as_ref()
    }

    /// The key has passed to a newer job.
    pub(crate) fn lose_key(&mut self) {
        self.key_lost = true;
    }

    /// Whether another failure makes the job dead.
    pub(crate) fn attempts_spent(&self) -> bool {
        self.attempts_max != 0 && self.attempts >= self.attempts_max
    }

    /// Whether a replay knew it only by the place it left: a real job has a ttr of at least 1 ms.
    pub(crate) fn is_stub(&self) -> bool {
        self.ttr_ms == 0
    }

    /// A stub learns its content.
    pub(crate) fn complete(&mut self, content: Content) {
        let job = Job { id: JobId(0), content, progress: self.progress() };
        *self = CompactJob::new(job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::Delays;
    use crate::schedule::ScheduleName;

    fn check(job: Job) {
        let mut compact = CompactJob::new(job.clone());
        assert_eq!(compact.to_job(job.id), job);
        assert_eq!(compact.progress(), job.progress);
        assert_eq!((compact.key(), compact.fence()), (job.key(), job.progress.fence));
        assert_eq!(compact.bytes(), u64::from(job.progress.bytes));
        assert_eq!(compact.attempts_spent(), job.attempts_spent());
        compact.lose_key();
        assert_eq!(compact.key(), None);
        let progress = Progress { key_lost: true, ..job.progress };
        assert_eq!(compact.to_job(job.id), Job { progress, ..job });
    }

    #[test]
    fn a_job_comes_back_whole() {
        check(Job::default());
        let content = Content {
            key: Some(Bytes::from_static(b"key")),
            headers: Some(Arc::new(vec![("a".to_owned(), "b".to_owned())])),
            body: Bytes::from_static(b"body"),
            body_kind: BodyKind::Json,
            ttr_ms: 3,
            attempts_max: 4,
            backoff: Some(Arc::new(Backoff::from(Delays::Fixed { delay_ms: 1 }))),
            key_ttl_ms: 5,
            expires_after_ms: 18,
            put_at: 6,
            tick: Some(Arc::new(TickOrigin {
                schedule: ScheduleName::new("nightly").unwrap(),
                tick_ms: 16,
                missed: 17,
            })),
            group: Some(Bytes::from_static(b"group")),
        };
        let progress = Progress {
            priority: 7,
            fence: 8,
            lapsed: true,
            key_lost: false,
            attempts: 9,
            reserves: 10,
            expiries: 11,
            releases: 12,
            kills: 13,
            kicks: 14,
            bytes: 15,
            error: Some(Bytes::from_static(b"error")),
        };
        check(Job { id: JobId(1), content: content.clone(), progress: progress.clone() });
        check(Job { id: JobId(1), content: Content::default(), progress: progress.clone() });
        check(Job { id: JobId(1), content: content.clone(), progress: Progress::default() });
        let mut stub = CompactJob::new(Job { id: JobId(1), progress, ..Job::default() });
        assert!(stub.is_stub());
        stub.complete(content.clone());
        assert!(!stub.is_stub() && stub.to_job(JobId(1)).content == content);
    }

    #[test]
    fn it_is_small() {
        assert!(size_of::<CompactJob>() * 2 < size_of::<Job>());
    }
}
