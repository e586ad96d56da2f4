//! Lines beside topics: schedules and deadlines rest there as entries, and are met when they are
//! due, whether or not somebody waits for jobs.

use bytes::Bytes;

use super::alarms::TopicAlarms;
use super::{Machine, Origin, Output};
use crate::error::Fatal;
use crate::fact::{Cause, Destination, Fact};
use crate::job::{Job, Progress};
use crate::place::Place;
use crate::time::Now;
use crate::timeline::{Next, Resting, Timeline};
use crate::topic::TopicNo;

/// The lines that a topic may have beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    Schedules,
    Deadlines,
}

impl LineKind {
    fn of(self, topic: TopicNo) -> TopicNo {
        match self {
            LineKind::Schedules => topic.schedules(),
            LineKind::Deadlines => topic.deadlines(),
        }
    }
}

/// When the lines of one kind are to be looked at.
#[derive(Debug, Default)]
pub(crate) struct LineAlarms {
    /// When the first entry of a topic is due, or before.
    alarms: TopicAlarms,
    /// The due entry there is not durable yet.
    blocked: Vec<TopicNo>,
}

impl LineAlarms {
    /// Look at the line of this topic at this steady instant.
    pub(super) fn plan(&mut self, topic: TopicNo, at: u64) {
        self.alarms.plan(topic, at);
    }

    /// An entry came to rest at this place of the topic's line.
    pub(super) fn plan_entry(&mut self, topic: TopicNo, at: Place, now: Now) {
        let in_ms = now.until_ms(at.class.clock(), at.due_at);
        self.plan(topic, now.steady_ms.saturating_add(in_ms));
    }

    /// The steady instant of the next look.
    pub(super) fn next(&self) -> Option<u64> {
        self.alarms.next()
    }

    pub(super) fn synced(&mut self) {
        for topic in std::mem::take(&mut self.blocked) {
            self.alarms.plan(topic, 0);
        }
    }

    /// The wall clock was stepped: all lines are to be looked at.
    pub(super) fn make_all_due(&mut self) {
        self.alarms.make_all_due();
    }
}

/// The fact that the entry at this place goes.
pub(super) fn entry_gone(place: Place, key: Option<Bytes>) -> Fact {
    Fact::Move {
        id: place.id,
        topic: place.topic,
        left: Some(place),
        to: Destination::Gone,
        progress: Progress::default(),
        key,
        cause: Cause::Cancel,
    }
}

impl<T: Timeline> Machine<T> {
    fn line_alarms(&mut self, line: LineKind) -> &mut LineAlarms {
        match line {
            LineKind::Schedules => &mut self.schedules.line,
            LineKind::Deadlines => &mut self.deadlines.line,
        }
    }

    /// The topic whose first entry is due for longest, of several the one of the smallest number:
    /// the same over every timeline, although their alarms may be early by different spans.
    pub(super) fn first_due_line(
        &mut self,
        line: LineKind,
        now: Now,
        budget: &mut usize,
    ) -> Result<Option<TopicNo>, Fatal> {
        while *budget > 0
            && let Some(topic) = self.line_alarms(line).alarms.pop_due(now)
        {
            *budget -= 1;
            let Some(place) = self.line_head(line, topic, now, budget)? else { continue };
            let due_at = now.steady_ms.saturating_sub(place.overdue_ms(now));
            let alarms = &mut self.line_alarms(line).alarms;
            if !alarms.has_before(due_at, topic) {
                return Ok(Some(topic));
            }
            alarms.plan(topic, due_at);
        }
        Ok(None)
    }

    /// The due entry at the head of a topic's line. If there is none to be met now, the next look
    /// is planned.
    pub(super) fn line_head(
        &mut self,
        line: LineKind,
        topic: TopicNo,
        now: Now,
        budget: &mut usize,
    ) -> Result<Option<Place>, Fatal> {
        let again_at = match self.timeline.next(line.of(topic), now)? {
            Next::Due(place) if *budget > 0 => return Ok(Some(place)),
            Next::Due(_) => 0,
            Next::In(ms) => now.steady_ms.saturating_add(ms),
            Next::Blocked => {
                self.line_alarms(line).blocked.push(topic);
                return Ok(None);
            }
            Next::Empty => {
                self.note_line_empty(line, topic);
                return Ok(None);
            }
            Next::Again | Next::Unread => {
                *budget = 0;
                0
            }
        };
        self.line_alarms(line).plan(topic, again_at);
        Ok(None)
    }

    fn note_line_empty(&mut self, line: LineKind, topic: TopicNo) {
        if line == LineKind::Deadlines
            && let Some(value) = self.topics.get_mut(topic)
        {
            value.has_deadlines = false;
        }
    }

    /// The entry at this place, wherever in its line that is, goes.
    pub(super) fn remove_entry(&mut self, place: Place, key: Option<Bytes>, out: &mut Output) {
        let job = Job { id: place.id, ..Job::default() };
        let resting = Resting { place, job, put_batch: 0 };
        self.commit(entry_gone(place, key), Origin::Found(resting), out);
    }
}
