//! A partition in Redis, as a model: jobs, leases, and the memory of sequences, behind the same
//! protocol as the scripts.

use std::collections::{BTreeMap, HashMap};

use dormouse_core::job::JobId;

use super::super::{HeadsReport, Request, SharedPoll, Weight};
use crate::limits::BATCH_AGE_MS_MAX;

pub(super) const TTR_MS: u64 = 2_000;
/// That of all jobs.
pub(super) const PRIORITY: u32 = 7;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Put { jobs: usize, delay_ms: u64 },
    Ack(Vec<Lease>),
    Release(Vec<Lease>),
    Read,
}

/// A request of the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TestRequest {
    pub(super) no: u64,
    /// Its submission, and its place in it.
    pub(super) submission: Option<(u64, u64)>,
    pub(super) kind: Kind,
}

impl Request for TestRequest {
    fn weight(&self) -> Weight {
        let jobs = match &self.kind {
            Kind::Put { jobs, .. } => *jobs,
            Kind::Ack(leases) => leases.len(),
            Kind::Release(leases) => 2 * leases.len(),
            Kind::Read => 64,
        };
        Weight { jobs: jobs.max(1), bytes: 100 * jobs }
    }

    fn items(&self) -> usize {
        self.weight().jobs
    }

    fn phase(&self) -> u8 {
        match self.kind {
            Kind::Put { .. } => 0,
            Kind::Ack(_) => 1,
            Kind::Release(_) => 3,
            Kind::Read => 6,
        }
    }

    fn may_make_visible(&self) -> bool {
        matches!(self.kind, Kind::Put { .. } | Kind::Release(_))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lease {
    pub(super) id: u64,
    pub(super) fence: u64,
}

/// A script batch on its way; may exist many times.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) sequence: u8,
    pub(super) number: u64,
    pub(super) about_ms: u64,
    pub(super) requests: Vec<TestRequest>,
    pub(super) polls: Vec<SharedPoll>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Reply {
    /// Due time and id of every job put.
    pub(super) puts: Vec<(u64, JobId)>,
    /// Per poll.
    pub(super) polls: Vec<(Vec<Lease>, HeadsReport)>,
}

#[derive(Clone, Debug)]
pub(super) enum Verdict {
    Done(Reply),
    /// Not executed: the configuration has changed, or the copy is too old.
    Again,
    Late,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    due_at: u64,
    lease: Option<u64>,
}

#[derive(Default)]
pub(super) struct FakePartition {
    jobs: BTreeMap<u64, Job>,
    last_id: u64,
    last_fence: u64,
    memory: HashMap<u8, (u64, Reply)>,
    /// The earliest instant that waiting servers know of.
    waiting: u64,
    /// A change of the configuration that servers do not know yet.
    pub(super) is_stale: bool,
    /// Numbers of the requests executed by the last script.
    pub(super) executed: Vec<TestRequest>,
    /// Wakeups published by the last script.
    pub(super) published: Vec<u64>,
}

impl FakePartition {
    pub(super) fn execute(&mut self, script: &Script, now_ms: u64) -> Verdict {
        self.executed.clear();
        self.published.clear();
        match self.memory.get(&script.sequence) {
            Some((saved, reply)) if *saved == script.number => return Verdict::Done(reply.clone()),
            Some((saved, _)) if *saved > script.number => return Verdict::Late,
            _ => {}
        }
        if std::mem::take(&mut self.is_stale) || now_ms.abs_diff(script.about_ms) > BATCH_AGE_MS_MAX
        {
            return Verdict::Again;
        }
        let (mut writes, mut puts) = (false, Vec::new());
        for request in &script.requests {
            writes |= request.kind != Kind::Read;
            self.run(&request.kind, now_ms, &mut puts);
            self.executed.push(request.clone());
        }
        let polls: Vec<_> = script.polls.iter().map(|poll| self.poll(poll, now_ms)).collect();
        writes |= polls.iter().any(|(jobs, _)| !jobs.is_empty());
        let reply = Reply { puts, polls };
        if writes {
            self.memory.insert(script.sequence, (script.number, reply.clone()));
        }
        Verdict::Done(reply)
    }

    fn run(&mut self, kind: &Kind, now_ms: u64, puts: &mut Vec<(u64, JobId)>) {
        match kind {
            Kind::Put { jobs, delay_ms } => {
                for _ in 0..*jobs {
                    self.put(now_ms + delay_ms);
                    puts.push((now_ms + delay_ms, JobId(self.last_id)));
                }
            }
            Kind::Ack(leases) => self.end(leases, None),
            Kind::Release(leases) => self.end(leases, Some(now_ms)),
            Kind::Read => {}
        }
    }

    /// Also for other servers.
    pub(super) fn put(&mut self, due_at: u64) {
        self.last_id += 1;
        self.jobs.insert(self.last_id, Job { due_at, lease: None });
        self.wake(due_at);
    }

    fn wake(&mut self, at_ms: u64) {
        if at_ms < self.waiting {
            self.waiting = at_ms;
            self.published.push(at_ms);
        }
    }

    fn end(&mut self, leases: &[Lease], due_at: Option<u64>) {
        for lease in leases {
            if self.jobs.get(&lease.id).is_none_or(|job| job.lease != Some(lease.fence)) {
                continue;
            }
            match due_at {
                None => {
                    self.jobs.remove(&lease.id);
                }
                Some(due_at) => {
                    self.jobs.insert(lease.id, Job { due_at, lease: None });
                    self.wake(due_at);
                }
            }
        }
    }

    fn poll(&mut self, poll: &SharedPoll, now_ms: u64) -> (Vec<Lease>, HeadsReport) {
        let mut visible: Vec<_> =
            self.jobs.iter().filter(|(_, job)| job.due_at <= now_ms).collect();
        visible.sort_by_key(|(id, job)| (job.due_at, **id));
        let ids: Vec<u64> = visible.into_iter().map(|(id, _)| *id).take(poll.max).collect();
        let mut leases = Vec::new();
        for id in ids {
            self.last_fence += 1;
            let lease = Some(self.last_fence);
            self.jobs.insert(id, Job { due_at: now_ms + TTR_MS, lease });
            leases.push(Lease { id, fence: self.last_fence });
        }
        let first = |is_leased: bool| {
            let of_kind = self.jobs.iter().filter(|(_, job)| job.lease.is_some() == is_leased);
            of_kind.map(|(id, job)| (job.due_at, JobId(*id))).min()
        };
        let (head, lease_end) = (first(false), first(true).map(|(at, _)| at));
        if poll.waits {
            self.waiting =
                head.map(|(at, _)| at).into_iter().chain(lease_end).min().unwrap_or(u64::MAX);
        }
        let heads = vec![(PRIORITY, head)];
        (leases, HeadsReport { lease_end, heads, ..HeadsReport::default() })
    }

    /// Comes back without data and without memory of sequences.
    pub(super) fn lose_data(&mut self) {
        // Ids and fences go on, so that the test can tell jobs apart.
        let (last_id, last_fence) = (self.last_id, self.last_fence);
        *self = FakePartition { last_id, last_fence, is_stale: true, ..FakePartition::default() };
    }

    /// Another server takes all jobs.
    pub(super) fn take_all(&mut self) {
        self.jobs.clear();
    }

    /// Leases that have not ended, by job.
    pub(super) fn leases(&self, now_ms: u64) -> impl Iterator<Item = Lease> {
        self.jobs
            .iter()
            .filter(move |(_, job)| job.due_at > now_ms)
            .filter_map(|(&id, job)| Some(Lease { id, fence: job.lease? }))
    }

    pub(super) fn has_visible(&self, now_ms: u64) -> bool {
        self.jobs.values().any(|job| job.due_at <= now_ms)
    }
}
