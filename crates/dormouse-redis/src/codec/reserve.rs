//! reserve, in words of the script.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::LeasedJob;
use dormouse_core::topic::TopicName;

use crate::wire::progress::KEY_LOST;
use crate::wire::{Op, Reader, Records, Writer, record, strange};

/// An instant that never comes: the end of a zone of scores.
pub(crate) const NEVER: u64 = (1 << 45) - 1;

/// What reserve sorts visible jobs by, smallest first: priority, due time, id.
pub(crate) type Rank = (u32, u64, JobId);

/// A look for jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Poll {
    pub(crate) max: usize,
    pub(crate) ttr_ms: Option<u64>,
    /// Bytes of jobs that the answer may have.
    pub(crate) room: u64,
    /// Give only what comes before this one.
    pub(crate) bound: Option<Rank>,
    /// Whoever gets less than `max` waits for more.
    pub(crate) waits: bool,
}

pub(crate) fn op(poll: Poll) -> Op {
    let text = |number: u64| Bytes::from(number.to_string());
    let bound = poll.bound.map_or_else(Bytes::new, |(priority, due_at, id)| {
        Writer::default().u32(priority).u48(due_at).id(id).take()
    });
    let args = vec![
        text(poll.max as u64),
        poll.ttr_ms.map_or_else(Bytes::new, text),
        text(poll.room),
        bound,
        Bytes::from_static(if poll.waits { b"1" } else { b"" }),
    ];
    Op::new("reserve", args)
}

/// What a look came to.
#[derive(Debug)]
pub(crate) struct PollReply {
    pub(crate) jobs: Vec<LeasedJob>,
    /// Reserve gives nothing until then; 0 = it gives.
    pub(crate) paused_until: u64,
    /// No lease ends before; `None` = none ends.
    pub(crate) lease_end: Option<u64>,
    /// The first job of each priority that was looked at; `None` = there is none.
    pub(crate) heads: Vec<(u32, Option<(u64, JobId)>)>,
}

impl PollReply {
    /// What would be given next; `None` = nothing that is visible was seen.
    pub(crate) fn next(&self, now_ms: u64) -> Option<Rank> {
        self.heads.iter().find_map(|&(priority, head)| {
            let (due_at, id) = head.filter(|&(due_at, _)| due_at <= now_ms)?;
            Some((priority, due_at, id))
        })
    }
}

/// Reads the answer; jobs whose record went while an answer was lost are left out.
pub(crate) fn read(
    answer: &mut Reader<'_>,
    records: &mut Records,
    topic: &TopicName,
    now_ms: u64,
) -> Result<PollReply, Error> {
    let paused_until = answer.u48()?;
    let lease_end = Some(answer.u48()?).filter(|&at| at > 0 && at < NEVER);
    let count = answer.u16()?;
    let jobs = read_jobs(answer, count, records, topic, now_ms)?;
    let count = answer.u8()?;
    let mut heads = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let (priority, due_at, id) = (answer.u32()?, answer.u48()?, answer.id()?);
        heads.push((priority, (id != JobId(0)).then_some((due_at, id))));
    }
    Ok(PollReply { jobs, paused_until, lease_end, heads })
}

/// What the leases of a run have in common, from the job of this index on; the fence is that job's.
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
    fn read(answer: &mut Reader<'_>) -> Result<Lease, Error> {
        Ok(Lease {
            from: answer.u16()?,
            fence: answer.u64()?,
            attempt: answer.u32()?,
            expires_at: answer.u48()?,
            ttr_ms: answer.u48()?,
            priority: answer.u32()?,
            flags: answer.u8()?,
        })
    }

    fn token(&self, id: JobId, index: u16) -> Token {
        Token { id, fence: self.fence.wrapping_add(u64::from(index.wrapping_sub(self.from))) }
    }
}

/// So many leased jobs; those whose record is there no more are left out.
pub(crate) fn read_jobs(
    answer: &mut Reader<'_>,
    count: u16,
    records: &mut Records,
    topic: &TopicName,
    now_ms: u64,
) -> Result<Vec<LeasedJob>, Error> {
    let mut ids = Reader::new(answer.bytes(usize::from(count) * 8)?);
    let leases = runs(answer, Lease::read)?;
    let dues = runs(answer, |answer| Ok((answer.u16()?, answer.u48()?)))?;
    let mut jobs = Vec::with_capacity(usize::from(count));
    for index in 0..count {
        let (id, record) = (ids.id()?, records.next()?);
        let lease = leases.iter().rfind(|lease| lease.from <= index);
        let due_at = dues.iter().rfind(|(from, _)| *from <= index);
        let (Some(lease), Some(&(_, due_at))) = (lease, due_at) else {
            return Err(strange("a job has no lease"));
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
        });
    }
    Ok(jobs)
}

/// Runs with their number before them.
fn runs<T>(
    answer: &mut Reader<'_>,
    read: impl Fn(&mut Reader<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let count = answer.u16()?;
    (0..count).map(|_| read(answer)).collect()
}
