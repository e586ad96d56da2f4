//! Queries over the jobs of a topic: peek, list, forecast.

use std::collections::VecDeque;

use bytes::Bytes;
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, State};
use dormouse_core::limits::{JOB_BYTES_MAX, REPLY_BYTES_MAX};
use dormouse_core::op::{Forecast, JobView, List, ListOrder, Page, Peek, check_limit};
use dormouse_core::refusal::foreign_cursor;
use dormouse_core::topic::TopicName;

use super::Fanout;
use super::get::read_view;
use crate::partition::Effect;
use crate::wire::{Op, Reader, Records, Writer, codes, malformed};

pub(super) fn state_code(state: State) -> u8 {
    match state {
        State::Delayed => codes::DELAYED,
        State::Ready => codes::READY,
        State::Leased => codes::LEASED,
        State::Dead => codes::DEAD,
        State::Done => codes::ACKED,
    }
}

/// The first job of a page. Waiting jobs are sorted by priority, due time and id; dead and done
/// ones by their end and id; leased ones by expiry and id. All but the first have priority 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cursor {
    priority: u32,
    at_ms: u64,
    id: JobId,
}

/// One page of a partition's list.
#[derive(Debug)]
struct ListPart {
    jobs: Vec<JobView>,
    next: Next,
}

/// What follows after a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Nothing.
    End,
    /// More jobs, from here on.
    From(Cursor),
    /// More jobs, but this one did not fit into the bytes left.
    NoRoom(Cursor),
}

/// `room`: bytes of jobs that fit into the reply.
fn list_op(list: &List, limit: usize, room: u64, from: Option<Cursor>) -> Op {
    let mut to = Writer::default();
    let limit = u16::try_from(limit).unwrap_or(u16::MAX);
    let order = match list.range.order {
        ListOrder::Usual => codes::LIST_USUAL,
        ListOrder::Due => codes::LIST_DUE,
        ListOrder::Newest => codes::LIST_NEWEST,
    };
    let page = to
        .u8(state_code(list.state))
        .u16(limit)
        .u48(room.min(LAST_MS))
        .u8(order)
        .u48(list.range.from_ms.unwrap_or(0).min(LAST_MS))
        .u48(list.range.to_ms.unwrap_or(LAST_MS).min(LAST_MS))
        .take();
    let from = from
        .map_or_else(Bytes::new, |from| to.u32(from.priority).u48(from.at_ms).id(from.id).take());
    Op::new("list", vec![page, from])
}

fn read_list(
    reply: &mut Reader<'_>,
    records: &mut Records,
    topic: &TopicName,
) -> Result<ListPart, Error> {
    let count = reply.u16()?;
    let mut jobs = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        jobs.extend(read_view(reply, records, topic)?.transpose()?);
    }
    let end = reply.u8()?;
    let next = Cursor { priority: reply.u32()?, at_ms: reply.u48()?, id: reply.id()? };
    let next = match end {
        codes::LIST_END => Next::End,
        codes::LIST_MORE => Next::From(next),
        codes::LIST_NO_ROOM => Next::NoRoom(next),
        _ => return Err(malformed("unknown end of a list")),
    };
    Ok(ListPart { jobs, next })
}

/// Later than the due time of any job; fits into 48 bits.
const LAST_MS: u64 = (1 << 48) - 1;

/// Counts the jobs that become due in each step of `[from_ms, to_ms)`, which is not empty.
fn forecast_op(from_ms: u64, step_ms: u64, to_ms: u64) -> Op {
    let mut to = Writer::default();
    for ms in [from_ms, step_ms, to_ms] {
        to.u48(ms.min(LAST_MS));
    }
    Op::new("forecast", vec![to.take()])
}

/// The counts of the first steps, as many as one script call computes.
fn read_counts(reply: &mut Reader<'_>) -> Result<Vec<u64>, Error> {
    let count = reply.u16()?;
    (0..count).map(|_| reply.u64()).collect()
}

/// Reads where a page begins: the partition, and the position in its order.
fn read_cursor(text: &str) -> Option<(usize, Option<Cursor>)> {
    let number = |part: Option<&str>| u64::from_str_radix(part?, 16).ok();
    let mut parts = text.split('.').skip(1);
    let partition = usize::try_from(number(parts.next())?).ok()?;
    let priority = u32::try_from(number(parts.next())?).ok()?;
    let (at_ms, id) = (number(parts.next())?, JobId(number(parts.next())?));
    let whole = parts.next().is_none() && at_ms < 1 << 48;
    let cursor = (id != JobId(0)).then_some(Cursor { priority, at_ms, id });
    whole.then_some((partition, cursor))
}

fn write_cursor(state: State, partition: usize, cursor: Option<Cursor>) -> String {
    let Cursor { priority, at_ms, id } =
        cursor.unwrap_or(Cursor { priority: 0, at_ms: 0, id: JobId(0) });
    format!("{}.{partition:x}.{priority:x}.{at_ms:x}.{:x}", kind(state), id.0)
}

/// Delayed and ready jobs share a list, so a cursor of one is good for the other.
fn kind(state: State) -> char {
    match state {
        State::Delayed | State::Ready => 'w',
        State::Leased => 'l',
        State::Dead => 'd',
        State::Done => 'h',
    }
}

/// Scripts of a page, besides one for each partition: jobs that died unseen are passed over, and a
/// page that met many of them is short.
const LIST_SCRIPTS_MAX: usize = 32;

/// Jobs that are asked of a partition beyond its share of a page.
const MERGED_AHEAD: usize = 8;

/// Jobs of a partition that were read and not given yet.
struct MergedPart {
    jobs: VecDeque<JobView>,
    /// Where to read on; `None` = there are no more.
    from: Option<Option<Cursor>>,
}

impl MergedPart {
    /// The sort key of its first job, smallest first.
    fn rank(&self, order: ListOrder) -> Option<(u64, u64)> {
        let first = self.jobs.front()?;
        let rank = (first.due_at, first.job.id.0);
        Some(if order == ListOrder::Newest { (!rank.0, !rank.1) } else { rank })
    }
}

fn write_merged_cursor(order: ListOrder, view: &JobView) -> String {
    let kind = if order == ListOrder::Newest { 'n' } else { 'o' };
    format!("{kind}.{:x}.{:x}", view.due_at, view.job.id.0)
}

fn read_merged_cursor(order: ListOrder, text: &str) -> Option<Cursor> {
    let kind = if order == ListOrder::Newest { "n." } else { "o." };
    let (at_ms, id) = text.strip_prefix(kind)?.split_once('.')?;
    let number = |part: &str| u64::from_str_radix(part, 16).ok();
    let (at_ms, id) = (number(at_ms)?, JobId(number(id)?));
    (at_ms <= LAST_MS).then_some(Cursor { priority: 0, at_ms, id })
}

fn page(list: &List, jobs: Vec<JobView>, index: usize, from: Option<Cursor>) -> Reply {
    let cursor = Some(write_cursor(list.state, index, from));
    Reply::Page(Page { jobs, cursor })
}

impl Fanout<'_> {
    /// The first job over all partitions.
    pub(super) async fn peek(self, peek: &Peek) -> Answer {
        let mut first: Option<JobView> = None;
        for partition in self.partitions(&peek.topic) {
            let op = Op::new("peek", vec![Writer::default().u8(state_code(peek.state)).take()]);
            let mut raw = self.submit_op(&partition, Effect::Read, op).await?;
            let mut from = Reader::new(&raw.answer);
            let view = read_view(&mut from, &mut raw.records, &peek.topic)?.transpose()?;
            let rank = |view: &JobView| match view.state {
                State::Ready => (view.job.progress.priority, view.due_at, view.job.id),
                _ => (0, view.due_at, view.job.id),
            };
            first = first.into_iter().chain(view).min_by_key(rank);
        }
        Ok(Reply::View(first.map(Box::new)))
    }

    /// Lists one partition after the other.
    pub(super) async fn list(self, list: &List) -> Answer {
        check_limit(list.limit)?;
        list.range.check(list.state)?;
        if list.range.order != ListOrder::Usual {
            return self.list_merged(list).await;
        }
        let (mut index, mut from) = match &list.cursor {
            None => (0, None),
            Some(text) => Some(text)
                .filter(|text| text.starts_with(kind(list.state)))
                .and_then(|text| read_cursor(text))
                .ok_or_else(|| foreign_cursor(text, list.state))?,
        };
        let partitions = self.partitions(&list.topic);
        let (mut jobs, mut room) = (Vec::new(), REPLY_BYTES_MAX);
        let mut scripts = 0;
        while let Some(partition) = partitions.get(index) {
            let op = list_op(list, list.limit - jobs.len(), room, from);
            let mut raw = self.submit_op(partition, Effect::Read, op).await?;
            let part = read_list(&mut Reader::new(&raw.answer), &mut raw.records, &list.topic)?;
            let bytes = |view: &JobView| u64::from(view.job.progress.bytes);
            room = room.saturating_sub(part.jobs.iter().map(bytes).sum());
            jobs.extend(part.jobs);
            match part.next {
                Next::End => {
                    index += 1;
                    from = None;
                }
                Next::From(cursor) => from = Some(cursor),
                Next::NoRoom(cursor) => {
                    from = Some(cursor);
                    return Ok(page(list, jobs, index, from));
                }
            }
            scripts += 1;
            if jobs.len() >= list.limit || scripts >= LIST_SCRIPTS_MAX + partitions.len() {
                break;
            }
        }
        if index >= partitions.len() {
            return Ok(Reply::Page(Page { jobs, cursor: None }));
        }
        Ok(page(list, jobs, index, from))
    }

    /// Lists all partitions at once: each is asked for some jobs, and again when these are given.
    async fn list_merged(self, list: &List) -> Answer {
        let from = match &list.cursor {
            None => None,
            Some(text) => Some(
                read_merged_cursor(list.range.order, text)
                    .ok_or_else(|| foreign_cursor(text, list.state))?,
            ),
        };
        let partitions = self.partitions(&list.topic);
        let chunk = (list.limit / partitions.len().max(1) + MERGED_AHEAD).min(list.limit);
        let mut parts: Vec<MergedPart> = partitions
            .iter()
            .map(|_| MergedPart { jobs: VecDeque::new(), from: Some(from) })
            .collect();
        let (mut jobs, mut room): (Vec<JobView>, u64) = (Vec::new(), REPLY_BYTES_MAX);
        // All partitions together hold one reply ahead, and each a job.
        let ahead_bytes = (REPLY_BYTES_MAX / partitions.len().max(1) as u64).max(JOB_BYTES_MAX);
        loop {
            for (part, partition) in parts.iter_mut().zip(&partitions) {
                while part.jobs.is_empty()
                    && let Some(from) = part.from
                {
                    let op = list_op(list, chunk, ahead_bytes, from);
                    let mut raw = self.submit_op(partition, Effect::Read, op).await?;
                    let mut reply = Reader::new(&raw.answer);
                    let read = read_list(&mut reply, &mut raw.records, &list.topic)?;
                    part.jobs.extend(read.jobs);
                    part.from = match read.next {
                        Next::End => None,
                        Next::From(cursor) | Next::NoRoom(cursor) => Some(Some(cursor)),
                    };
                }
            }
            let heads = parts.iter_mut().filter(|part| !part.jobs.is_empty());
            let Some(first) = heads.min_by_key(|part| part.rank(list.range.order)) else {
                return Ok(Reply::Page(Page { jobs, cursor: None }));
            };
            let Some(next) = first.jobs.front() else { break };
            let bytes = u64::from(next.job.progress.bytes);
            if jobs.len() == list.limit || bytes > room && !jobs.is_empty() {
                // From the newest on, a page begins after the last job of the one before.
                let at =
                    if list.range.order == ListOrder::Newest { jobs.last() } else { Some(next) };
                let cursor = at.map(|view| write_merged_cursor(list.range.order, view));
                return Ok(Reply::Page(Page { jobs, cursor }));
            }
            room = room.saturating_sub(bytes);
            jobs.extend(first.jobs.pop_front());
        }
        Ok(Reply::Page(Page { jobs, cursor: None }))
    }

    /// Sums over all partitions; a script counts as many steps as its bound allows.
    pub(super) async fn forecast(self, forecast: &Forecast) -> Answer {
        let mut sums = vec![0; forecast.steps()?];
        for partition in self.partitions(&forecast.topic) {
            let mut done = 0;
            while done < sums.len() {
                let from_ms = forecast.from_ms + done as u64 * forecast.step_ms;
                let op = forecast_op(from_ms, forecast.step_ms, forecast.to_ms);
                let counts = self.ask(&partition, op, read_counts).await?;
                if counts.is_empty() {
                    break;
                }
                for (sum, count) in sums.iter_mut().skip(done).zip(&counts) {
                    *sum += count;
                }
                done += counts.len();
            }
        }
        Ok(Reply::Forecast(sums))
    }
}
