//! Encodes the arguments of the script verb `reserve` and decodes its reply.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::LeasedJob;
use dormouse_core::topic::TopicName;

use crate::scheduler::{HeadsReport, Rank};
use crate::wire::codes::{KEY_LOST, NEVER};
use crate::wire::{Op, Reader, Records, Writer, flag, malformed, number, optional, record};

/// The arguments of one reserve on one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Poll {
    pub(crate) max: usize,
    pub(crate) ttr_ms: Option<u64>,
    /// Bytes of jobs that fit into the reply.
    pub(crate) room: u64,
    pub(crate) bound: Option<Bound>,
    /// The caller will wait if it gets fewer than `max` jobs, and must be woken.
    pub(crate) waits: bool,
}

/// How far a poll goes that shares a reserve with other partitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// Only jobs that sort before this one, or none.
    pub(crate) before: Rank,
    /// If there is one, it may take this many, of the same priority also beyond the bound: where
    /// the jobs of two partitions alternate, each poll would otherwise get one job.
    pub(crate) least: usize,
}

pub(crate) fn op(poll: Poll) -> Op {
    let bound = poll.bound.map_or_else(Bytes::new, |bound| {
        let (priority, due_at, id) = bound.before;
        let least = u16::try_from(bound.least).unwrap_or(u16::MAX);
        Writer::default().u32(priority).u48(due_at).id(id).u16(least).take()
    });
    let (max, ttr_ms, room) = (number(poll.max as u64), optional(poll.ttr_ms), number(poll.room));
    Op::new("reserve", vec![max, ttr_ms, room, bound, flag(poll.waits)])
}

/// The result of a poll.
#[derive(Debug)]
pub(crate) struct PollReply {
    pub(crate) jobs: Vec<LeasedJob>,
    pub(crate) report: HeadsReport,
}

/// Jobs that were removed before a lost reply was requested again are left out.
pub(crate) fn read(
    reply: &mut Reader<'_>,
    records: &mut Records,
    topic: &TopicName,
    now_ms: u64,
) -> Result<PollReply, Error> {
    let closed_until = reply.u48()?;
    let lease_end = Some(reply.u48()?).filter(|&at| at > 0 && at < NEVER);
    let count = reply.u16()?;
    let jobs = read_jobs(reply, count, records, topic, now_ms)?;
    let count = reply.u8()?;
    let mut heads = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let (priority, due_at, id) = (reply.u32()?, reply.u48()?, reply.id()?);
        heads.push((priority, (id != JobId(0)).then_some((due_at, id))));
    }
    let is_partial = reply.u8()? == 1;
    Ok(PollReply { jobs, report: HeadsReport { closed_until, lease_end, heads, is_partial } })
}

/// What consecutive leases have in common, from the job with index `from` on, whose fence this is.
#[derive(Clone, Copy, Debug)]
struct Lease {
    from: u16,
    fence: u64,
    attempt: u32,
    expires_at: u64,
    ttr_ms: u64,
    priority: u32,
    flags: u8,
}

impl Lease {
    fn read(reply: &mut Reader<'_>) -> Result<Lease, Error> {
        Ok(Lease {
            from: reply.u16()?,
            fence: reply.u64()?,
            attempt: reply.u32()?,
            expires_at: reply.u48()?,
            ttr_ms: reply.u48()?,
            priority: reply.u32()?,
            flags: reply.u8()?,
        })
    }

    fn token(&self, id: JobId, index: u16) -> Token {
        Token { id, fence: self.fence.wrapping_add(u64::from(index.wrapping_sub(self.from))) }
    }
}

/// `count` leased jobs, without those whose record is gone.
pub(crate) fn read_jobs(
    reply: &mut Reader<'_>,
    count: u16,
    records: &mut Records,
    topic: &TopicName,
    now_ms: u64,
) -> Result<Vec<LeasedJob>, Error> {
    let mut ids = Reader::new(reply.bytes(usize::from(count) * 8)?);
    let leases = runs(reply, Lease::read)?;
    let dues = runs(reply, |reply| Ok((reply.u16()?, reply.u48()?)))?;
    let mut jobs = Vec::with_capacity(usize::from(count));
    for index in 0..count {
        let (id, record) = (ids.id()?, records.next()?);
        let lease = leases.iter().rfind(|lease| lease.from <= index);
        let due_at = dues.iter().rfind(|(from, _)| *from <= index);
        let (Some(lease), Some(&(_, due_at))) = (lease, due_at) else {
            return Err(malformed("a job without a lease"));
        };
        if record.is_empty() {
            continue;
        }
        let (content, _) = record::decode(&record)?;
        jobs.push(LeasedJob {
            topic: topic.clone(),
            id,
            key: content.key.filter(|_| lease.flags & KEY_LOST == 0),
            token: lease.token(id, index),
            attempt: lease.attempt,
            due_at,
            put_at: content.put_at,
            late_ms: now_ms.saturating_sub(due_at),
            expires_at: lease.expires_at,
            ttr_ms: lease.ttr_ms,
            priority: lease.priority,
            headers: content.headers,
            body: content.body,
            body_kind: content.body_kind,
            tick: content.tick,
            group: content.group,
            expires_after_ms: content.expires_after_ms,
        });
    }
    Ok(jobs)
}

/// A counted list of runs.
fn runs<T>(
    reply: &mut Reader<'_>,
    read: impl Fn(&mut Reader<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let count = reply.u16()?;
    (0..count).map(|_| read(reply)).collect()
}
