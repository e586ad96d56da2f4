//! schedules: a page of a topic's schedules, in the order of their next ticks, the parked ones
//! last. Every partition has its own; a page merges the first of all of them.

use bytes::Bytes;
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::op::{Schedules, SchedulesPage, check_limit};
use dormouse_core::schedule::ScheduleName;

use super::Fanout;
use super::get_schedule::view;
use super::schedule_store::{StoredSchedule, now_of};
use crate::limits::BATCH_JOBS_MAX;
use crate::partition::{Effect, Partition};
use crate::wire::{Op, Reader, number};

/// The last schedule of a page: its score and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    score: u64,
    name: ScheduleName,
}

impl Position {
    fn of(stored: &StoredSchedule) -> Position {
        Position { score: stored.score, name: stored.name.clone() }
    }

    fn write(&self) -> String {
        format!("{:x}.{}", self.score, self.name)
    }

    fn read(text: &str) -> Result<Position, Error> {
        let read = || {
            let (score, name) = text.split_once('.')?;
            let score = u64::from_str_radix(score, 16).ok().filter(|score| *score < 1 << 52)?;
            Some(Position { score, name: ScheduleName::new(name).ok()? })
        };
        read().ok_or_else(|| {
            let shown: String = text.chars().take(64).collect();
            Error::invalid(format!("cursor {shown:?} is none of ours; leave it out"))
        })
    }
}

/// Schedules of one partition.
struct Part {
    schedules: Vec<StoredSchedule>,
    /// There are more behind them.
    more: bool,
    now_ms: u64,
}

impl Fanout<'_> {
    pub(super) async fn schedules(self, page: &Schedules) -> Answer {
        check_limit(page.limit)?;
        let from = page.cursor.as_deref().map(Position::read).transpose()?;
        let limit = page.limit.min(BATCH_JOBS_MAX);
        let (mut all, mut now_ms, mut more) = (Vec::new(), 0, false);
        // Behind the last one of a partition that has more there may be an earlier one than here.
        let mut sure_until: Option<Position> = None;
        for partition in self.partitions(&page.topic) {
            let part = self.schedules_part(&partition, from.as_ref(), limit).await?;
            if part.more {
                let last = part.schedules.last().map(Position::of);
                sure_until = sure_until.into_iter().chain(last).min();
                more = true;
            }
            now_ms = now_ms.max(part.now_ms);
            all.extend(part.schedules);
        }
        all.sort_by_cached_key(Position::of);
        all.retain(|stored| sure_until.as_ref().is_none_or(|last| Position::of(stored) <= *last));
        more |= all.len() > limit;
        all.truncate(limit);
        let cursor = all.last().filter(|_| more).map(|last| Position::of(last).write());
        let views = all.into_iter().map(|stored| view(page.topic.clone(), stored, now_of(now_ms)));
        let schedules =
            views.filter(|view| page.state.is_none_or(|state| state == view.state)).collect();
        Ok(Reply::Schedules(SchedulesPage { schedules, cursor }))
    }

    async fn schedules_part(
        self,
        partition: &Partition,
        from: Option<&Position>,
        limit: usize,
    ) -> Result<Part, Error> {
        let score = from.map_or_else(Bytes::new, |from| number(from.score));
        let name = from
            .map_or_else(Bytes::new, |from| Bytes::copy_from_slice(from.name.as_str().as_bytes()));
        let op = Op::new("schedule_page", vec![number(limit as u64), score, name]);
        let raw = self.submit_op(partition, Effect::Read, op).await?;
        let mut from = Reader::new(&raw.answer);
        let (more, mut schedules) = (from.u8()? == 1, Vec::new());
        while !from.is_empty() {
            schedules.push(StoredSchedule::read(&mut from)?);
        }
        let more = more && !schedules.is_empty();
        Ok(Part { schedules, more, now_ms: raw.now_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_written() {
        let name = ScheduleName::new("a.b-c").unwrap();
        let position = Position { score: 1 << 46, name };
        assert_eq!(Position::read(&position.write()), Ok(position));
        for text in ["", "1", "x.a", "fffffffffffffffff.a", "1.", "1.{"] {
            assert!(Position::read(text).is_err(), "{text}");
        }
    }
}
