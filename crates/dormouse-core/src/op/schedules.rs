//! schedules: a page of a topic's schedules, in the order of their next ticks, the parked ones
//! last.

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::job::JobId;
use crate::limits::PORTION_BYTES;
use crate::machine::{Machine, Position, Rule, ScheduleEntry};
use crate::op::list::check_limit;
use crate::op::{ScheduleState, ScheduleView};
use crate::place::Class;
use crate::time::{Clock, Now};
use crate::timeline::{Room, Timeline};
use crate::topic::{TopicName, TopicNo};

/// A page of schedules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedules {
    /// Of this topic.
    pub topic: TopicName,
    /// Only those in this state.
    pub state: Option<ScheduleState>,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// How many at most.
    pub limit: usize,
}

/// A page of schedules. It may have fewer than were asked for, even none, and not be the last: a
/// page reads a bounded number of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulesPage {
    /// The schedules.
    pub schedules: Vec<ScheduleView>,
    /// Where the next page begins; `None` = this was the last.
    pub cursor: Option<String>,
}

operation! {
    Schedules => SchedulesPage,
        request => Command::Schedules(request), Reply::Schedules(page) => Ok(page);
}

/// Where a page begins: in each of the two classes with a next tick, then among the parked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PageStart {
    is_parked: bool,
    steady: Position,
    wall: Position,
    parked: Position,
}

impl PageStart {
    fn write(&self) -> String {
        let numbers = [self.steady, self.wall, self.parked].map(|(at, id)| [at, id.0]);
        let numbers = numbers.as_flattened().iter().map(|number| format!("{number:x}"));
        let text: Vec<String> = numbers.collect();
        format!("{}.{}", u8::from(self.is_parked), text.join("."))
    }

    fn read(text: &str) -> Result<PageStart, Error> {
        let numbers: Option<Vec<u64>> =
            text.split('.').map(|number| u64::from_str_radix(number, 16).ok()).collect();
        match numbers.as_deref() {
            Some(&[is_parked @ 0..=1, a, b, c, d, e, f]) => Ok(PageStart {
                is_parked: is_parked == 1,
                steady: (a, JobId(b)),
                wall: (c, JobId(d)),
                parked: (e, JobId(f)),
            }),
            _ => {
                let shown: String = text.chars().take(64).collect();
                Err(Error::invalid(format!("cursor {shown:?} is none of ours; leave it out")))
            }
        }
    }
}

/// Entries of one class, and where the next page of it begins.
struct ClassPage {
    entries: std::iter::Peekable<std::vec::IntoIter<ScheduleEntry>>,
    next: Option<Position>,
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn schedules_page(&mut self, now: Now, page: &Schedules) -> Rule<Reply> {
        check_limit(page.limit)?;
        let mut start =
            page.cursor.as_deref().map(PageStart::read).transpose()?.unwrap_or_default();
        let mut schedules = Vec::new();
        let mut cursor = None;
        if let Some(topic) = self.topics.find(&page.topic) {
            let mut entries = Vec::new();
            let mut room = Room { jobs: page.limit, bytes: PORTION_BYTES };
            if !start.is_parked {
                entries = self.waiting_page(topic, &mut start, room, now)?;
                room.jobs -= entries.len();
            }
            let mut has_more = true;
            if start.is_parked && room.jobs > 0 {
                has_more = self.parked_page(topic, &mut start, room, &mut entries)?;
            }
            cursor = has_more.then(|| start.write());
            let views = entries.into_iter();
            let views = views.map(|entry| self.view_schedule(page.topic.clone(), entry, now));
            schedules = views.filter(|view| page.state.is_none_or(|is| is == view.state)).collect();
        }
        Ok(Reply::Schedules(SchedulesPage { schedules, cursor }))
    }

    fn class_page(
        &mut self,
        topic: TopicNo,
        class: Class,
        from: Position,
        room: Room,
    ) -> Rule<ClassPage> {
        let (entries, next) = self.page_schedules(topic, class, from, room)?;
        Ok(ClassPage { entries: entries.into_iter().peekable(), next })
    }

    /// Entries with a next tick, in its order.
    fn waiting_page(
        &mut self,
        topic: TopicNo,
        start: &mut PageStart,
        room: Room,
        now: Now,
    ) -> Rule<Vec<ScheduleEntry>> {
        let (steady, wall) = (Class::waiting(0, Clock::Steady), Class::waiting(0, Clock::Wall));
        let mut steady = self.class_page(topic, steady, start.steady, room)?;
        let mut wall = self.class_page(topic, wall, start.wall, room)?;
        let due = |entry: &ScheduleEntry| entry.place.due_wall_ms(now);
        let mut entries = Vec::new();
        while entries.len() < room.jobs {
            // Behind the end of what was read there may be an earlier one.
            let is_unsure =
                |page: &mut ClassPage| page.entries.peek().is_none() && page.next.is_some();
            if is_unsure(&mut steady) || is_unsure(&mut wall) {
                break;
            }
            let (of_steady, of_wall) = (steady.entries.peek(), wall.entries.peek());
            let takes_steady = match (of_steady, of_wall) {
                (Some(one), Some(other)) => due(one) <= due(other),
                (one, None) => one.is_some(),
                (None, Some(_)) => false,
            };
            let (page, position) = match takes_steady {
                true => (&mut steady, &mut start.steady),
                false => (&mut wall, &mut start.wall),
            };
            let Some(entry) = page.entries.next() else { break };
            *position = entry.behind();
            entries.push(entry);
        }
        for (page, position) in [(&mut steady, &mut start.steady), (&mut wall, &mut start.wall)] {
            if page.entries.peek().is_none()
                && let Some(next) = page.next
            {
                *position = next;
            }
        }
        let is_done = |page: &mut ClassPage| page.entries.peek().is_none() && page.next.is_none();
        let had_room = entries.len() < room.jobs;
        start.is_parked = had_room && is_done(&mut steady) && is_done(&mut wall);
        Ok(entries)
    }

    /// Adds parked entries. Tells whether there may be more.
    fn parked_page(
        &mut self,
        topic: TopicNo,
        start: &mut PageStart,
        room: Room,
        entries: &mut Vec<ScheduleEntry>,
    ) -> Rule<bool> {
        let (parked, next) = self.page_schedules(topic, Class::DEAD, start.parked, room)?;
        let is_cut = next.is_some() || parked.len() == room.jobs || is_large(&parked);
        let behind = parked.last().map(ScheduleEntry::behind);
        start.parked = next.or(behind).unwrap_or(start.parked);
        entries.extend(parked);
        Ok(is_cut)
    }
}

/// Whether a page ended because of its bytes.
fn is_large(entries: &[ScheduleEntry]) -> bool {
    entries.iter().map(|entry| entry.bytes).sum::<u64>() > PORTION_BYTES
}
