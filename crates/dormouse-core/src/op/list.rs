//! list: a page of jobs of a state.

use crate::command::{Command, Reply, operation};
use crate::error::{Error, Fatal};
use crate::job::{JobId, State};
use crate::limits::{PAGE_MAX, REPLY_BYTES_MAX};
use crate::machine::{LongCommand, Machine, Portion, Rule};
use crate::op::JobView;
use crate::place::Class;
use crate::refusal::foreign_cursor;
use crate::time::Now;
use crate::timeline::{Resting, Room, Stretch, Timeline};
use crate::topic::{TopicName, TopicNo};

/// A page of jobs: waiting ones by priority, then clock, then due time; dead ones by age; leased
/// ones by id.
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

    /// The cursor of a request, if it is one of a list of this state.
    fn of(list: &List) -> Result<Option<Cursor>, Error> {
        let Some(text) = &list.cursor else { return Ok(None) };
        let fits = |cursor: &Cursor| match (list.state, cursor.class) {
            (State::Leased, class) => class.is_none(),
            (State::Dead, class) => class == Some(Class::DEAD),
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
    topic: Option<TopicNo>,
    /// Where to go on.
    cursor: Option<Cursor>,
    found: PageJobs<Resting>,
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn list(&mut self, list: List) -> Rule<LongCommand> {
        check_limit(list.limit)?;
        let cursor = Cursor::of(&list)?;
        let topic = self.topics.find(&list.topic);
        let found = PageJobs::new(list.limit);
        Ok(LongCommand::List(ListProgress { list, topic, cursor, found }))
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
        let state = progress.list.state;
        let classes = match state {
            State::Dead => vec![Class::DEAD],
            _ => self.timeline.classes(topic)?,
        };
        let found = &mut progress.found;
        for class in classes {
            let from = match progress.cursor {
                Some(cursor) if cursor.class > Some(class) => continue,
                Some(cursor) if cursor.class == Some(class) => (cursor.due_at, cursor.id),
                _ => (0, JobId(0)),
            };
            let stretch = self.page_of_state(now, topic, class, state, from, found.room)?;
            for resting in stretch.jobs {
                found.room.take(&resting.job);
                found.jobs.push(resting);
            }
            if !found.room.is_left() {
                break;
            }
            if let Some((due_at, id)) = stretch.next {
                progress.cursor = Some(Cursor { class: Some(class), due_at, id });
                return Ok(Portion::More(LongCommand::List(progress)));
            }
        }
        let next = progress.found.cut().map(|resting: Resting| {
            let place = resting.place;
            Cursor { class: Some(place.class), due_at: place.due_at, id: place.id }.write()
        });
        let view = |resting| self.view_resting(resting, now);
        let jobs = progress.found.jobs.into_iter().filter_map(view).collect();
        Ok(Portion::Done(Reply::Page(Page { jobs, cursor: next })))
    }

    fn page_of_state(
        &mut self,
        now: Now,
        topic: TopicNo,
        class: Class,
        state: State,
        from: (u64, JobId),
        room: Room,
    ) -> Result<Stretch, Fatal> {
        let present = now.on(class.clock());
        match state {
            State::Ready => {
                // Counting first keeps a lane of delayed jobs from being read for nothing.
                let ready = self.timeline.count(topic, class, present)?;
                let jobs = room.jobs.min(usize::try_from(ready).unwrap_or(usize::MAX));
                if jobs == 0 {
                    return Ok(Stretch::default());
                }
                let room = Room { jobs, ..room };
                let mut stretch = self.timeline.page(topic, class, from, room)?;
                stretch.jobs.retain(|resting| resting.place.due_at <= present);
                stretch.next = stretch.next.filter(|next| next.0 <= present);
                Ok(stretch)
            }
            State::Delayed => {
                let from = from.max((present.saturating_add(1), JobId(0)));
                self.timeline.page(topic, class, from, room)
            }
            State::Dead | State::Leased => self.timeline.page(topic, class, from, room),
        }
    }
}

/// Pages are bounded.
pub fn check_limit(limit: usize) -> Result<(), Error> {
    if (1..=PAGE_MAX).contains(&limit) {
        return Ok(());
    }
    Err(Error::invalid(format!("limit is {limit}; give 1 to {PAGE_MAX} and page on by cursor")))
}
