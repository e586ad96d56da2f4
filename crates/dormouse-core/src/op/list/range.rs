//! list within a range of time, and in the order of due times or from the newest on.
//!
//! Waiting jobs of all priorities in the order of their due times: one lane after the other is read
//! from the start of the page on, and the earliest jobs are kept. A lane is left as soon as it has
//! nothing earlier to give, so a page costs a look at each lane besides its own jobs.

use std::collections::BTreeMap;

use crate::Map;
use crate::command::Reply;
use crate::error::{Error, Fatal};
use crate::job::{JobId, State};
use crate::limits::REPLY_BYTES_MAX;
use crate::machine::{ClassWalk, LongCommand, Machine, Portion, PortionBudget, Rule};
use crate::op::JobView;
use crate::op::list::{List, Page, only_class};
use crate::place::Class;
use crate::refusal::foreign_cursor;
use crate::time::{Clock, Now};
use crate::timeline::{Resting, Room, Timeline};
use crate::topic::TopicNo;

/// A class of a topic, and the instant and id from which on to read in it.
type LanePoint = (Class, (u64, JobId));

/// Which jobs of a state, and in what order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListRange {
    /// Due, dead or done at this instant or later, wall ms.
    pub from_ms: Option<u64>,
    /// Due, dead or done before this instant, wall ms.
    pub to_ms: Option<u64>,
    /// The order.
    pub order: ListOrder,
}

/// An order of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListOrder {
    /// Waiting ones by priority, then clock, then due time; dead and done ones by age.
    #[default]
    Usual,
    /// Waiting ones by due time, then id, whatever their priority.
    Due,
    /// Dead and done ones, the last one first.
    Newest,
}

impl ListRange {
    /// Refuses what a state does not have.
    pub fn check(&self, state: State) -> Result<(), Error> {
        let is_waiting = matches!(state, State::Delayed | State::Ready);
        if *self != ListRange::default() && state == State::Leased {
            return Err(Error::invalid(
                "from, to and an order are not for leased jobs; list them by id",
            ));
        }
        match self.order {
            ListOrder::Due if !is_waiting => Err(Error::invalid(format!(
                "the order by due time is for delayed and ready jobs, not for {state} ones; leave \
                 it out"
            ))),
            ListOrder::Newest if is_waiting => Err(Error::invalid(format!(
                "the newest first is for dead and done jobs, not for {state} ones; leave it out"
            ))),
            _ => Ok(()),
        }
    }

    /// The bounds on a clock: from the first one on, before the second one.
    pub(crate) fn on(&self, clock: Clock, now: Now) -> (u64, u64) {
        let instant = |ms: u64| now.instant_of(clock, ms);
        (self.from_ms.map_or(0, instant), self.to_ms.map_or(u64::MAX, instant))
    }
}

/// Jobs that are read at once of a lane that may end soon.
const AHEAD: usize = 16;

/// A position among all waiting jobs: the same instant on both clocks, and an id.
#[derive(Clone, Copy, Debug)]
struct DueCursor {
    wall_ms: u64,
    steady_ms: u64,
    id: JobId,
}

impl DueCursor {
    fn of(resting: &Resting, now: Now) -> DueCursor {
        let (clock, due_at) = (resting.place.class.clock(), resting.place.due_at);
        let wall_ms = now.to_wall(clock, due_at);
        let steady_ms = match clock {
            Clock::Steady => due_at,
            Clock::Wall => now.instant_of(Clock::Steady, due_at),
        };
        DueCursor { wall_ms, steady_ms, id: resting.place.id }
    }

    fn write(self) -> String {
        format!("o{:x}.{:x}.{:x}", self.wall_ms, self.steady_ms, self.id.0)
    }

    fn read(text: &str) -> Option<DueCursor> {
        let mut parts = text.strip_prefix('o')?.split('.');
        let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
        let (wall_ms, steady_ms, id) = (number()?, number()?, JobId(number()?));
        parts.next().is_none().then_some(DueCursor { wall_ms, steady_ms, id })
    }

    fn on(self, clock: Clock) -> (u64, JobId) {
        match clock {
            Clock::Wall => (self.wall_ms, self.id),
            Clock::Steady => (self.steady_ms, self.id),
        }
    }
}

/// A list in the order of due times between two portions.
#[derive(Debug)]
pub(crate) struct DueProgress {
    list: List,
    /// When it began: the order is that of this instant.
    now: Now,
    topic: Option<TopicNo>,
    start: Option<DueCursor>,
    /// The lane that is being read, and those behind it.
    lane: Option<LanePoint>,
    walk: ClassWalk,
    /// The earliest jobs so far.
    found: BTreeMap<(u64, JobId), Resting>,
    places: Map<JobId, u64>,
    bytes: u64,
    /// The first job that has no room.
    end: Option<DueCursor>,
}

impl DueProgress {
    /// Whether a job may be one of the page.
    fn has_room_for(&self, key: (u64, JobId)) -> bool {
        self.end.is_none_or(|end| key < (end.wall_ms, end.id))
    }

    fn add(&mut self, key: (u64, JobId), resting: Resting) {
        // One that was moved meanwhile is met again: it is shown where it is now.
        if let Some(before) = self.places.insert(key.1, key.0)
            && let Some(gone) = self.found.remove(&(before, key.1))
        {
            self.bytes -= u64::from(gone.job.progress.bytes);
        }
        self.bytes += u64::from(resting.job.progress.bytes);
        self.found.insert(key, resting);
        while self.found.len() > self.list.limit
            || self.bytes > REPLY_BYTES_MAX && self.found.len() > 1
        {
            let Some((_, last)) = self.found.pop_last() else { break };
            self.bytes -= u64::from(last.job.progress.bytes);
            self.end = Some(DueCursor::of(&last, self.now));
        }
    }
}

/// A list from the newest on between two portions.
#[derive(Debug)]
pub(crate) struct NewestProgress {
    list: List,
    now: Now,
    topic: Option<TopicNo>,
    /// All jobs are before this position; the next one to read is the last before it.
    before: (u64, JobId),
    found: Vec<Resting>,
    room: Room,
}

fn read_newest(text: &str) -> Option<(u64, JobId)> {
    let (due_at, id) = text.strip_prefix('n')?.split_once('.')?;
    let number = |part: &str| u64::from_str_radix(part, 16).ok();
    Some((number(due_at)?, JobId(number(id)?)))
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn list_due(&mut self, now: Now, list: List) -> Rule<LongCommand> {
        let read =
            |text: &String| DueCursor::read(text).ok_or_else(|| foreign_cursor(text, list.state));
        let start = list.cursor.as_ref().map(read).transpose()?;
        let topic = self.topics.find(&list.topic);
        Ok(LongCommand::ListDue(Box::new(DueProgress {
            list,
            now,
            topic,
            start,
            lane: None,
            walk: ClassWalk::new(),
            found: BTreeMap::new(),
            places: Map::default(),
            bytes: 0,
            end: None,
        })))
    }

    pub(crate) fn list_due_portion(
        &mut self,
        now: Now,
        mut progress: DueProgress,
    ) -> Rule<Portion> {
        let mut budget = PortionBudget::new();
        while let Some(topic) = progress.topic {
            if progress.lane.is_none() {
                let class = self.next_class(topic, &mut progress.walk)?;
                progress.lane = class.map(|class| (class, self.due_start(&progress, class)));
            }
            let Some((class, from)) = progress.lane else { break };
            if !budget.is_left() {
                return Ok(Portion::More(LongCommand::ListDue(Box::new(progress))));
            }
            progress.lane = self.read_due(topic, class, from, &mut progress, &mut budget)?;
        }
        let cursor = progress.end.map(DueCursor::write);
        let view = |resting| self.view_resting(resting, now);
        let jobs: Vec<JobView> = progress.found.into_values().filter_map(view).collect();
        Ok(Portion::Done(Reply::Page(Page { jobs, cursor })))
    }

    /// Where the page begins in a lane.
    #[expect(clippy::unused_self, reason = "beside the others")]
    fn due_start(&self, progress: &DueProgress, class: Class) -> (u64, JobId) {
        let (clock, now) = (class.clock(), progress.now);
        let (low, _) = progress.list.range.on(clock, now);
        let mut from = (low, JobId(0));
        if progress.list.state == State::Delayed {
            from = from.max((now.on(clock).saturating_add(1), JobId(0)));
        }
        progress.start.map_or(from, |start| from.max(start.on(clock)))
    }

    /// Reads on in a lane; gives where to go on in it, unless it has nothing for this page.
    fn read_due(
        &mut self,
        topic: TopicNo,
        class: Class,
        from: (u64, JobId),
        progress: &mut DueProgress,
        budget: &mut PortionBudget,
    ) -> Result<Option<LanePoint>, Fatal> {
        let (clock, now) = (class.clock(), progress.now);
        let (_, mut before) = progress.list.range.on(clock, now);
        if progress.list.state == State::Ready {
            before = before.min(now.on(clock).saturating_add(1));
        }
        budget.look(self.timeline.sources());
        let mut room = budget.room(Room { jobs: AHEAD, bytes: REPLY_BYTES_MAX });
        let stretch = self.timeline.page(topic, class, from, room)?;
        if stretch.jobs.is_empty() && stretch.next.is_some() {
            // It passed cancelled jobs, as many as a portion may.
            budget.end();
        }
        let mut next = stretch.next;
        for resting in stretch.jobs {
            budget.take(&resting.job);
            room.take(&resting.job);
            let place = resting.place;
            let key = (place.due_wall_ms(now), place.id);
            if place.due_at >= before || !progress.has_room_for(key) {
                return Ok(None);
            }
            if !room.is_left() {
                next = next.or(Some((place.due_at, JobId(place.id.0.saturating_add(1)))));
            }
            progress.add(key, resting);
        }
        Ok(next.map(|next| (class, next)))
    }

    pub(crate) fn list_newest(&mut self, now: Now, list: List) -> Rule<LongCommand> {
        let class = only_class(list.state).unwrap_or(Class::DEAD);
        let (_, to) = list.range.on(class.clock(), now);
        let mut before = (to, JobId(0));
        if to == u64::MAX {
            before.1 = JobId(u64::MAX);
        }
        if let Some(text) = &list.cursor {
            let cursor = read_newest(text).ok_or_else(|| foreign_cursor(text, list.state))?;
            before = before.min(cursor);
        }
        let topic = self.topics.find(&list.topic);
        let room = Room { jobs: list.limit + 1, bytes: REPLY_BYTES_MAX };
        let found = Vec::new();
        let progress = NewestProgress { list, now, topic, before, found, room };
        Ok(LongCommand::ListNewest(Box::new(progress)))
    }

    pub(crate) fn list_newest_portion(
        &mut self,
        now: Now,
        mut progress: NewestProgress,
    ) -> Rule<Portion> {
        let class = only_class(progress.list.state).unwrap_or(Class::DEAD);
        let (low, _) = progress.list.range.on(class.clock(), progress.now);
        let mut budget = PortionBudget::new();
        let mut goes_on = progress.topic;
        while progress.room.is_left()
            && let Some(topic) = goes_on
        {
            if !budget.is_left() {
                return Ok(Portion::More(LongCommand::ListNewest(Box::new(progress))));
            }
            budget.look(self.timeline.sources());
            let mut room = budget.room(progress.room);
            let stretch = self.timeline.page_back(topic, class, progress.before, room)?;
            if stretch.jobs.is_empty() && stretch.next.is_some() {
                budget.end();
            }
            goes_on = None;
            for resting in stretch.jobs {
                budget.take(&resting.job);
                room.take(&resting.job);
                if resting.place.due_at < low {
                    progress.room.jobs = 0;
                    return Ok(self.newest_page(now, progress, true));
                }
                progress.room.take(&resting.job);
                progress.before = (resting.place.due_at, resting.place.id);
                progress.found.push(resting);
                goes_on = (!room.is_left()).then_some(topic);
            }
            if let Some(next) = stretch.next {
                (progress.before, goes_on) = (next, Some(topic));
            }
        }
        let is_last = progress.room.is_left();
        Ok(self.newest_page(now, progress, is_last))
    }

    fn newest_page(&self, now: Now, mut progress: NewestProgress, is_last: bool) -> Portion {
        if !is_last {
            // One more than the page may have.
            progress.found.pop();
        }
        let last = progress.found.last().filter(|_| !is_last);
        let cursor = last.map(|last| format!("n{:x}.{:x}", last.place.due_at, last.place.id.0));
        let view = |resting| self.view_resting(resting, now);
        let jobs = progress.found.into_iter().filter_map(view).collect();
        Portion::Done(Reply::Page(Page { jobs, cursor }))
    }
}
