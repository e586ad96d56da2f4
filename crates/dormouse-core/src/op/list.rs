//! list: a page of jobs of a state.

use crate::command::{Command, Reply, operation};
use crate::error::{Error, Fatal};
use crate::job::{JobId, State};
use crate::limits::{PAGE_MAX, REPLY_BYTES_MAX};
use crate::machine::{Machine, Rule};
use crate::op::JobView;
use crate::place::Class;
use crate::refusal::foreign_cursor;
use crate::time::Now;
use crate::timeline::{Resting, Room, Timeline};
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
#[derive(Clone, Copy)]
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

impl<T: Timeline> Machine<T> {
    pub(crate) fn list(&mut self, now: Now, list: &List) -> Rule<Reply> {
        check_limit(list.limit)?;
        let cursor = Cursor::of(list)?;
        let Some(topic) = self.topics.find(&list.topic) else {
            return Ok(Reply::Page(Page { jobs: Vec::new(), cursor: None }));
        };
        let page = match list.state {
            State::Leased => self.list_leased(now, topic, cursor, list.limit),
            state => self.list_resting(now, topic, state, cursor, list.limit)?,
        };
        Ok(Reply::Page(page))
    }

    fn list_leased(&self, now: Now, topic: TopicNo, cursor: Option<Cursor>, limit: usize) -> Page {
        let from = cursor.map_or(JobId(0), |cursor| cursor.id);
        let value = self.topics.get(topic);
        let ids = value.into_iter().flat_map(|value| value.leased.range(from..)).copied();
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
        state: State,
        cursor: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, Fatal> {
        let classes = match state {
            State::Dead => vec![Class::DEAD],
            _ => self.timeline.classes(topic)?,
        };
        let mut found = PageJobs::new(limit);
        for class in classes {
            let from = match cursor {
                Some(cursor) if cursor.class > Some(class) => continue,
                Some(cursor) if cursor.class == Some(class) => (cursor.due_at, cursor.id),
                _ => (0, JobId(0)),
            };
            for resting in self.page_of_state(now, topic, class, state, from, found.room)? {
                found.room.take(&resting.job);
                found.jobs.push(resting);
            }
            if !found.room.is_left() {
                break;
            }
        }
        let next = found.cut().map(|resting: Resting| {
            let place = resting.place;
            Cursor { class: Some(place.class), due_at: place.due_at, id: place.id }.write()
        });
        let view = |resting| self.view_resting(resting, now);
        Ok(Page { jobs: found.jobs.into_iter().filter_map(view).collect(), cursor: next })
    }

    fn page_of_state(
        &mut self,
        now: Now,
        topic: TopicNo,
        class: Class,
        state: State,
        from: (u64, JobId),
        room: Room,
    ) -> Result<Vec<Resting>, Fatal> {
        let present = now.on(class.clock());
        match state {
            State::Ready => {
                // Counting first keeps a lane of delayed jobs from being read for nothing.
                let ready = self.timeline.count(topic, class, present)?;
                let jobs = room.jobs.min(usize::try_from(ready).unwrap_or(usize::MAX));
                if jobs == 0 {
                    return Ok(Vec::new());
                }
                let room = Room { jobs, ..room };
                let mut page = self.timeline.page(topic, class, from, room)?;
                page.retain(|resting| resting.place.due_at <= present);
                Ok(page)
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
