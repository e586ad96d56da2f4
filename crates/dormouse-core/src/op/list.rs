//! list: a page of jobs of a state.

mod range;

use crate::Set;
use crate::command::{Command, Reply, operation};
use crate::error::{Error, Fatal};
use crate::job::{JobId, State};
use crate::limits::{PAGE_MAX, REPLY_BYTES_MAX};
use crate::machine::{ClassWalk, LongCommand, Machine, Portion, PortionBudget, Rule};
use crate::op::JobView;
use crate::place::Class;
use crate::refusal::foreign_cursor;
use crate::time::Now;
use crate::timeline::{Resting, Room, Stretch, Timeline};
use crate::topic::{TopicName, TopicNo};

pub(crate) use range::{DueProgress, NewestProgress};
pub use range::{ListOrder, ListRange};

/// A page of jobs: waiting ones by priority, then clock, then due time; dead and done ones by age;
/// leased ones by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// The topic.
    pub topic: TopicName,
    /// Which state.
    pub state: State,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// How many at most; fewer are given where more would be too large a reply.
    pub limit: usize,
    /// Which of them, and in what order.
    pub range: ListRange,
}

/// A page of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The jobs.
    pub jobs: Vec<JobView>,
    /// Where the next page begins; `None` = this was the last.
    pub cursor: Option<String>,
}

/// Where a page begins: the class (none for leased jobs), due time and id of its first job.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    class: Option<Class>,
    due_at: u64,
    id: JobId,
}

impl Cursor {
    fn write(self) -> String {
        match self.class {
            Some(class) => format!("{:x}.{:x}.{:x}", class.to_u64(), self.due_at, self.id.0),
            None => format!("{:x}", self.id.0),
        }
    }

    fn read(text: &str) -> Option<Cursor> {
        let number = |part: &str| u64::from_str_radix(part, 16).ok();
        let mut parts = text.split('.');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(id), None, None, None) => {
                Some(Cursor { class: None, due_at: 0, id: JobId(number(id)?) })
            }
            (Some(class), Some(due_at), Some(id), None) => Some(Cursor {
                class: Some(Class::from_u64(number(class)?)?),
                due_at: number(due_at)?,
                id: JobId(number(id)?),
            }),
            _ => None,
        }
    }

    /// A lane that is to be read from here on.
    fn lane(self, class: Class) -> ListedLane {
        ListedLane { class, from: (self.due_at, self.id), ready: None }
    }

    /// The cursor of a request, if it is one of a list of this state.
    fn of(list: &List) -> Result<Option<Cursor>, Error> {
        let Some(text) = &list.cursor else { return Ok(None) };
        let fits = |cursor: &Cursor| match (list.state, cursor.class) {
            (State::Leased, class) => class.is_none(),
            (State::Dead, class) => class == Some(Class::DEAD),
            (State::Done, class) => class == Some(Class::DONE),
            (State::Delayed | State::Ready, class) => class.is_some_and(Class::is_waiting),
        };
        let cursor = Cursor::read(text).filter(fits);
        cursor.map(Some).ok_or_else(|| foreign_cursor(text, list.state))
    }
}

/// The jobs of a page: one more than the page may have shows where the next one begins.
#[derive(Debug)]
struct PageJobs<J> {
    jobs: Vec<J>,
    room: Room,
}

impl<J> PageJobs<J> {
    fn new(limit: usize) -> PageJobs<J> {
        let room = Room { jobs: limit + 1, bytes: REPLY_BYTES_MAX };
        PageJobs { jobs: Vec::new(), room }
    }

    /// Takes the one too many out, if there is one.
    fn cut(&mut self) -> Option<J> {
        if self.room.is_left() { None } else { self.jobs.pop() }
    }
}

operation! {
    List => Page,
        request => Command::List(request), Reply::Page(reply) => Ok(reply);
}

/// A list between two portions.
#[derive(Debug)]
pub(crate) struct ListProgress {
    list: List,
    /// When it began: bounds of time are those of this instant.
    now: Now,
    topic: Option<TopicNo>,
    cursor: Option<Cursor>,
    /// The lane that is being read, and those behind it.
    lane: Option<ListedLane>,
    walk: ClassWalk,
    found: PageJobs<Resting>,
}

/// A lane of which some may have been read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListedLane {
    class: Class,
    from: (u64, JobId),
    /// Jobs that are ready from here on, at most, if they were counted.
    ready: Option<u64>,
}

impl ListedLane {
    /// A lane of which nothing was read.
    pub(super) fn first_of(class: Class) -> ListedLane {
        ListedLane { class, from: (0, JobId(0)), ready: None }
    }
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn list(&mut self, now: Now, list: List) -> Rule<LongCommand> {
        check_limit(list.limit)?;
        list.range.check(list.state)?;
        match list.range.order {
            ListOrder::Usual => {}
            ListOrder::Due => return self.list_due(now, list),
            ListOrder::Newest => return self.list_newest(now, list),
        }
        let cursor = Cursor::of(&list)?;
        let topic = self.topics.find(&list.topic);
        let found = PageJobs::new(list.limit);
        let walk = ClassWalk::from(cursor.and_then(|cursor| cursor.class).unwrap_or(Class::FIRST));
        let begin = Cursor { class: None, due_at: 0, id: JobId(0) };
        let lane = only_class(list.state).map(|class| cursor.unwrap_or(begin).lane(class));
        let progress = ListProgress { list, now, topic, cursor, lane, walk, found };
        Ok(LongCommand::List(Box::new(progress)))
    }

    pub(crate) fn list_portion(&mut self, now: Now, progress: ListProgress) -> Rule<Portion> {
        let ListProgress { list, topic, cursor, .. } = &progress;
        match (topic, list.state) {
            (None, _) => {
                let empty = Page { jobs: Vec::new(), cursor: None };
                Ok(Portion::Done(Reply::Page(empty)))
            }
            (Some(topic), State::Leased) => {
                let page = self.list_leased(now, *topic, *cursor, list.limit);
                Ok(Portion::Done(Reply::Page(page)))
            }
            (Some(topic), _) => self.list_resting(now, *topic, progress),
        }
    }

    fn list_leased(&self, now: Now, topic: TopicNo, cursor: Option<Cursor>, limit: usize) -> Page {
        let from = cursor.map_or(JobId(0), |cursor| cursor.id);
        let ids = self.leases.of_topic(topic, from);
        let mut found = PageJobs::new(limit);
        for view in ids.filter_map(|id| self.view_leased(id, now)) {
            if !found.room.is_left() {
                break;
            }
            found.room.take(&view.job);
            found.jobs.push(view);
        }
        let next = found.cut().map(|view| Cursor { class: None, due_at: 0, id: view.job.id });
        Page { jobs: found.jobs, cursor: next.map(Cursor::write) }
    }

    fn list_resting(
        &mut self,
        now: Now,
        topic: TopicNo,
        mut progress: ListProgress,
    ) -> Rule<Portion> {
        let (state, range, begun) = (progress.list.state, progress.list.range, progress.now);
        let mut budget = PortionBudget::new();
        while progress.found.room.is_left()
            && let Some(lane) = self.listed_lane(topic, &mut progress)?
        {
            if !budget.is_left() {
                return Ok(Portion::More(LongCommand::List(Box::new(progress))));
            }
            budget.look(self.timeline.sources());
            let room = budget.room(progress.found.room);
            let bounds = range.on(lane.class.clock(), begun);
            let (stretch, lane) = self.page_of_state(now, topic, lane, state, (bounds, room))?;
            if stretch.jobs.is_empty() && stretch.next.is_some() {
                // It passed cancelled jobs, as many as a portion may.
                budget.end();
            }
            for resting in stretch.jobs {
                budget.take(&resting.job);
                progress.found.room.take(&resting.job);
                progress.found.jobs.push(resting);
            }
            progress.lane = lane;
        }
        Ok(Portion::Done(Reply::Page(self.listed_page(now, progress.found))))
    }

    /// The lane that is to be read on, or the next one.
    fn listed_lane(
        &mut self,
        topic: TopicNo,
        progress: &mut ListProgress,
    ) -> Result<Option<ListedLane>, Fatal> {
        if progress.lane.is_none() && only_class(progress.list.state).is_none() {
            let class = self.next_class(topic, &mut progress.walk)?;
            let begin = Cursor { class: None, due_at: 0, id: JobId(0) };
            let at = |class| progress.cursor.filter(|cursor| cursor.class == Some(class));
            progress.lane = class.map(|class| at(class).unwrap_or(begin).lane(class));
        }
        Ok(progress.lane)
    }

    /// The page of these jobs. One that was moved while the list was made may have been met twice:
    /// it is shown where it is now.
    fn listed_page(&self, now: Now, mut found: PageJobs<Resting>) -> Page {
        let next = found.cut();
        let mut seen: Set<JobId> = next.iter().map(|resting| resting.job.id).collect();
        let view = |resting: Resting| {
            if seen.insert(resting.job.id) { self.view_resting(resting, now) } else { None }
        };
        let mut jobs: Vec<JobView> = found.jobs.into_iter().rev().filter_map(view).collect();
        jobs.reverse();
        let cursor = next.map(|Resting { place, .. }| {
            Cursor { class: Some(place.class), due_at: place.due_at, id: place.id }.write()
        });
        Page { jobs, cursor }
    }

    /// Reads on in a lane; gives also where to go on in it, unless it is over.
    pub(super) fn page_of_state(
        &mut self,
        now: Now,
        topic: TopicNo,
        mut lane: ListedLane,
        state: State,
        ((low, before), mut room): ((u64, u64), Room),
    ) -> Result<(Stretch, Option<ListedLane>), Fatal> {
        let (class, present) = (lane.class, now.on(lane.class.clock()));
        lane.from = lane.from.max((low, JobId(0)));
        if before < u64::MAX {
            // It may end soon.
            room.jobs = room.jobs.min(RANGE_JOBS);
        }
        match state {
            State::Ready => {
                // Counting first keeps a lane of delayed jobs from being read for nothing.
                let ready = match lane.ready {
                    Some(ready) => ready,
                    None => self.timeline.count(topic, class, present)?,
                };
                room.jobs = room.jobs.min(usize::try_from(ready).unwrap_or(usize::MAX));
                if ready == 0 {
                    return Ok((Stretch::default(), None));
                }
                lane.ready = Some(ready);
            }
            State::Delayed => {
                lane.from = lane.from.max((present.saturating_add(1), JobId(0)));
            }
            State::Dead | State::Done | State::Leased => {}
        }
        let mut stretch = self.timeline.page(topic, class, lane.from, room)?;
        stretch.jobs.iter().for_each(|resting| room.take(&resting.job));
        let last = stretch.jobs.last().filter(|_| !room.is_left());
        let after = |last: &Resting| (last.place.due_at, JobId(last.place.id.0.saturating_add(1)));
        let mut next = stretch.next.or_else(|| last.map(after));
        if let Some(ready) = &mut lane.ready {
            *ready = ready.saturating_sub(stretch.jobs.len() as u64);
            next = next.filter(|next| next.0 <= present && *ready > 0);
            stretch.jobs.retain(|resting| resting.place.due_at <= present);
            stretch.next = stretch.next.filter(|_| next.is_some());
        }
        next = next.filter(|next| next.0 < before);
        stretch.next = stretch.next.filter(|_| next.is_some());
        stretch.jobs.retain(|resting| resting.place.due_at < before);
        Ok((stretch, next.map(|from| ListedLane { from, ..lane })))
    }
}

/// Jobs that are read at once of a lane that ends at an instant.
const RANGE_JOBS: usize = 64;

/// The class of all jobs of a state, if they are of one.
pub(super) fn only_class(state: State) -> Option<Class> {
    match state {
        State::Dead => Some(Class::DEAD),
        State::Done => Some(Class::DONE),
        State::Delayed | State::Ready | State::Leased => None,
    }
}

/// Pages are bounded.
pub fn check_limit(limit: usize) -> Result<(), Error> {
    if (1..=PAGE_MAX).contains(&limit) {
        return Ok(());
    }
    Err(Error::invalid(format!("limit is {limit}; give 1 to {PAGE_MAX} and page on by cursor")))
}
