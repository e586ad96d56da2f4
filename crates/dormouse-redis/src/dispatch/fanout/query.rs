//! Queries over the jobs of a topic: peek, list, forecast.

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::job::{JobId, State};
use dormouse_core::limits::REPLY_BYTES_MAX;
use dormouse_core::op::{Forecast, JobView, List, Page, Peek, check_limit};
use dormouse_core::refusal::foreign_cursor;

use super::Fanout;
use crate::codec::list::{Cursor, Next};
use crate::codec::{forecast, list, peek};
use crate::partition::Effect;
use crate::wire::Reader;

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
    }
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
            let mut raw = self.submit_op(&partition, Effect::Read, peek::op(peek.state)).await?;
            let mut from = Reader::new(&raw.answer);
            let view = peek::read(&mut from, &mut raw.records, &peek.topic)?;
            let rank = |view: &JobView| match view.state {
                State::Ready => (view.job.progress.priority, view.due_at, view.job.id),
                _ => (0, view.due_at, view.job.id),
            };
            first = first.into_iter().chain(view).min_by_key(rank);
        }
        Ok(Reply::View(first))
    }

    /// Lists one partition after the other.
    pub(super) async fn list(self, list: &List) -> Answer {
        check_limit(list.limit)?;
        let (mut index, mut from) = match &list.cursor {
            None => (0, None),
            Some(text) => Some(text)
                .filter(|text| text.starts_with(kind(list.state)))
                .and_then(|text| read_cursor(text))
                .ok_or_else(|| foreign_cursor(text, list.state))?,
        };
        let partitions = self.partitions(&list.topic);
        let (mut jobs, mut room) = (Vec::new(), REPLY_BYTES_MAX);
        while let Some(partition) = partitions.get(index) {
            let op = list::op(list.state, list.limit - jobs.len(), room, from);
            let mut raw = self.submit_op(partition, Effect::Read, op).await?;
            let part = list::read(&mut Reader::new(&raw.answer), &mut raw.records, &list.topic)?;
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
            if jobs.len() >= list.limit {
                break;
            }
        }
        if index >= partitions.len() {
            return Ok(Reply::Page(Page { jobs, cursor: None }));
        }
        Ok(page(list, jobs, index, from))
    }

    /// Sums over all partitions; a script counts as many steps as its bound allows.
    pub(super) async fn forecast(self, forecast: &Forecast) -> Answer {
        let mut sums = vec![0; forecast.steps()?];
        for partition in self.partitions(&forecast.topic) {
            let mut done = 0;
            while done < sums.len() {
                let from_ms = forecast.from_ms + done as u64 * forecast.step_ms;
                let op = forecast::op(from_ms, forecast.step_ms, forecast.to_ms);
                let counts = self.ask(&partition, op, forecast::read).await?;
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
