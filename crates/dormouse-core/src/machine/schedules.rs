//! Schedules: each rests in the timeline as the entry of its next tick, in a line beside the jobs
//! of its topic. Nothing of a far-off schedule is in memory.
//!
//! When an entry is due, the job of its tick is put and the entry moves on, in one batch. An entry
//! that waits for its last job is parked in a class that is never due. The end of that job wakes
//! it; should a crash come between the two, the review after the start does.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use jiff::tz::TimeZoneDatabase;

use super::lines::{LineAlarms, LineKind};
use super::{Machine, Origin, Output, PortionBudget, Rule, job_cost};
use crate::Set;
use crate::error::Fatal;
use crate::fact::Fact;
use crate::job::{Content, Job, JobId, Progress, TickOrigin};
use crate::limits::{
    PORTION_BYTES, SCHEDULE_RETRY_MS_MAX, SCHEDULE_RETRY_MS_MIN, SCHEDULE_REVIEW_MAX,
};
use crate::op::{Cancel, Target};
use crate::place::{Class, Place};
use crate::schedule::{
    LastJob, Overlap, Parked, Plan, Rest, Schedule, ScheduleName, TickCounts, TickPut,
};
use crate::time::Now;
use crate::timeline::{Resting, Room, Timeline};
use crate::topic::TopicNo;

/// Schedules that are counted as overdue at most: their numbers are in memory.
const OVERDUE_MAX: usize = 100_000;

/// A position in a class of entries.
pub(crate) type Position = (u64, JobId);

/// A look at the parked entries of a topic, as far as it has come.
#[derive(Clone, Copy, Debug, Default)]
struct Review {
    from: Position,
    /// Entries that were parked after this steady instant are none of its business; `None` = it has
    /// not begun.
    until: Option<u64>,
}

/// What is known of schedules besides their entries.
#[derive(Debug)]
pub(crate) struct Schedules {
    /// How many there are.
    pub(crate) count: u64,
    /// Ticks that passed since the start.
    passed: TickCounts,
    /// Times that a tick was refused because there was no room for its job.
    refused: u64,
    /// Entries whose tick was refused when it was last tried.
    overdue: Set<JobId>,
    pub(super) line: LineAlarms,
    /// Jobs of ticks that have ended.
    ended: VecDeque<(TopicNo, ScheduleName, JobId)>,
    /// Topics whose parked entries are to be looked at.
    reviews: BTreeMap<TopicNo, Review>,
    /// The topic that was reviewed last; the next is the one after it.
    reviewed: TopicNo,
    pub(crate) zones: TimeZoneDatabase,
}

impl Default for Schedules {
    fn default() -> Schedules {
        Schedules {
            count: 0,
            passed: TickCounts::default(),
            refused: 0,
            overdue: Set::default(),
            line: LineAlarms::default(),
            ended: VecDeque::new(),
            reviews: BTreeMap::new(),
            reviewed: TopicNo::default(),
            zones: TimeZoneDatabase::none(),
        }
    }
}

impl Schedules {
    /// The replay is over: what it noted is obsolete.
    pub(super) fn recovered(&mut self) {
        self.line = LineAlarms::default();
        self.ended.clear();
        self.reviews.clear();
    }

    /// The next topic to be reviewed, each in its turn; it is planned no more.
    fn next_review(&mut self) -> Option<(TopicNo, Review)> {
        let after = (Bound::Excluded(self.reviewed), Bound::Unbounded);
        let next = self.reviews.range(after).next().or_else(|| self.reviews.first_key_value());
        let (topic, review) = next.map(|(topic, review)| (*topic, *review))?;
        self.reviews.remove(&topic);
        self.reviewed = topic;
        Some((topic, review))
    }

    /// A tick of this entry was refused.
    fn note_refused(&mut self, entry: JobId) {
        self.refused += 1;
        self.note_overdue(entry);
    }

    fn note_overdue(&mut self, entry: JobId) {
        if self.overdue.len() < OVERDUE_MAX {
            self.overdue.insert(entry);
        }
    }

    /// The steady instant of the next thing to do.
    pub(super) fn next(&self) -> Option<u64> {
        if !self.ended.is_empty() || !self.reviews.is_empty() {
            return Some(0);
        }
        self.line.next()
    }
}

/// A schedule and the entry that it was read from.
#[derive(Debug)]
pub(crate) struct ScheduleEntry {
    pub(crate) name: ScheduleName,
    pub(crate) schedule: Schedule,
    /// When it was made, wall ms.
    pub(crate) created_at: u64,
    id: JobId,
    pub(crate) place: Place,
    /// Of its record, and of the job of a tick, about.
    pub(crate) bytes: u64,
}

impl ScheduleEntry {
    /// The position behind it in its class.
    pub(crate) fn behind(&self) -> Position {
        (self.place.due_at, JobId(self.id.0.saturating_add(1)))
    }

    fn read(resting: &Resting) -> Result<ScheduleEntry, Fatal> {
        let Resting { place, job, .. } = resting;
        let name = job.content.key.as_ref().and_then(|key| std::str::from_utf8(key).ok());
        let name = name.and_then(|name| ScheduleName::new(name).ok());
        let entry = name.zip(Schedule::decode(&job.content.body)).map(|(name, schedule)| {
            let created_at = job.content.put_at;
            let bytes = u64::from(job.progress.bytes);
            ScheduleEntry { name, schedule, created_at, id: job.id, place: *place, bytes }
        });
        entry.ok_or_else(|| {
            Fatal::new(format!("the record of the schedule at {place:?} cannot be read"))
        })
    }
}

impl<T: Timeline> Machine<T> {
    /// Takes the time zones that rules are read with.
    pub fn set_zones(&mut self, zones: TimeZoneDatabase) {
        self.schedules.zones = zones;
    }

    /// Schedules of all topics.
    pub fn schedule_count(&self) -> u64 {
        self.schedules.count
    }

    /// What became of the ticks that passed since the start.
    pub fn ticks_passed(&self) -> TickCounts {
        self.schedules.passed
    }

    /// Times since the start that a tick was refused because there was no room for its job. It is
    /// overdue until it is given.
    pub fn ticks_refused(&self) -> u64 {
        self.schedules.refused
    }

    /// Schedules whose tick could not be given because there is no room for its job; at most
    /// `OVERDUE_MAX` are counted.
    pub fn schedules_overdue(&self) -> usize {
        self.schedules.overdue.len()
    }

    /// Applies: a schedule came or went.
    pub(super) fn count_schedule(&mut self, topic: TopicNo, change: i64) {
        self.schedules.count = self.schedules.count.saturating_add_signed(change);
        if let Some(value) = self.topics.get_mut(topic) {
            value.schedules = value.schedules.saturating_add_signed(change);
        }
        self.topics.note_unused(topic);
    }

    /// Applies: a job has ended that may be one of a tick.
    pub(super) fn note_tick_end(&mut self, topic: TopicNo, id: JobId, tick: Option<&TickOrigin>) {
        if let Some(tick) = tick {
            self.schedules.ended.push_back((topic, tick.schedule.clone(), id));
        }
    }

    /// Jobs of the topic's schedules may have ended unnoticed, or entries may be due.
    pub(super) fn review_schedules(&mut self, topic: TopicNo) {
        if self.topics.get(topic).is_some_and(|value| value.schedules > 0) {
            self.schedules.line.plan(topic, 0);
            self.schedules.reviews.insert(topic, Review::default());
        }
    }

    /// The schedule of this name.
    pub(crate) fn find_schedule(
        &mut self,
        topic: TopicNo,
        name: &ScheduleName,
    ) -> Result<Option<ScheduleEntry>, Fatal> {
        if self.topics.get(topic).is_none_or(|value| value.schedules == 0) {
            return Ok(None);
        }
        let found = self.timeline.find_key(topic.schedules(), name.as_str().as_bytes())?;
        found.as_ref().map(ScheduleEntry::read).transpose()
    }

    /// A page of the entries of a class.
    pub(crate) fn page_schedules(
        &mut self,
        topic: TopicNo,
        class: Class,
        from: Position,
        room: Room,
    ) -> Result<(Vec<ScheduleEntry>, Option<Position>), Fatal> {
        let stretch = self.timeline.page(topic.schedules(), class, from, room)?;
        let entries: Result<Vec<_>, _> = stretch.jobs.iter().map(ScheduleEntry::read).collect();
        Ok((entries?, stretch.next))
    }

    /// Whether the last job of a schedule waits, is leased, or is between two attempts.
    pub(crate) fn is_last_alive(&mut self, schedule: &Schedule) -> Result<bool, Fatal> {
        match schedule.progress.last_job {
            Some(LastJob { id, .. }) => self.is_job_alive(id),
            None => Ok(false),
        }
    }

    /// Whether a job waits, is leased, or is between two attempts.
    fn is_job_alive(&mut self, id: JobId) -> Result<bool, Fatal> {
        let is_waiting = |place: Place| place.class.is_waiting();
        Ok(self.leases.get(id).is_some() || self.timeline.place_of(id)?.is_some_and(is_waiting))
    }

    /// Gives the ticks that are due. It has a budget of its own, so that many ticks at once do not
    /// hold up those who wait.
    pub(super) fn give_ticks(
        &mut self,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        // Ends of jobs have half of it, if there are as many.
        let mut ends = *budget / 2;
        let before = ends;
        self.settle_ended(now, &mut ends, out)?;
        *budget -= before - ends;
        while let Some(topic) = self.first_due_line(LineKind::Schedules, now, budget)? {
            self.give_ticks_of(topic, now, budget, out)?;
        }
        if *budget > 0 {
            self.review_parked(now, budget, out)?;
        }
        Ok(())
    }

    fn give_ticks_of(
        &mut self,
        topic: TopicNo,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        while let Some(place) = self.line_head(LineKind::Schedules, topic, now, budget)? {
            if self.full.is_some() {
                // Everybody is refused, and nothing more is to be written.
                self.schedules.note_overdue(place.id);
                self.schedules.line.plan(topic, now.after(SCHEDULE_RETRY_MS_MIN));
                return Ok(());
            }
            // It is not taken yet: if the topic is full, the tick is still to be given.
            let Some(resting) = self.timeline.find(place.id)? else { return Ok(()) };
            let entry = ScheduleEntry::read(&resting)?;
            *budget = budget.saturating_sub(2 * job_cost(entry.bytes));
            self.advance_schedule(topic, entry, now, out)?;
        }
        Ok(())
    }

    /// Wakes schedules whose last job has ended.
    fn settle_ended(
        &mut self,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        while *budget > 0
            && let Some((topic, name, id)) = self.schedules.ended.pop_front()
        {
            *budget -= 1;
            let Some(entry) = self.find_schedule(topic, &name)? else { continue };
            *budget = budget.saturating_sub(job_cost(entry.bytes));
            let progress = &entry.schedule.progress;
            let waited = progress.parked == Parked::Busy
                && progress.last_job.is_some_and(|last| last.id == id);
            if waited {
                *budget = budget.saturating_sub(2 * job_cost(entry.bytes));
                self.advance_schedule(topic, entry, now, out)?;
            }
        }
        Ok(())
    }

    /// Looks at some parked entries of a topic: after a start, and after a purge.
    fn review_parked(
        &mut self,
        now: Now,
        budget: &mut usize,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        let Some((topic, review)) = self.schedules.next_review() else { return Ok(()) };
        let until = review.until.unwrap_or(now.steady_ms);
        let room = Room { jobs: SCHEDULE_REVIEW_MAX, bytes: PORTION_BYTES };
        let (entries, next) = self.page_schedules(topic, Class::DEAD, review.from, room)?;
        let costs = entries.iter().map(|entry| 2 * job_cost(entry.bytes));
        *budget = budget.saturating_sub(1 + costs.sum::<usize>());
        let behind = entries.last().map(ScheduleEntry::behind);
        if let Some(from) = next.or(behind)
            && from.0 <= until
        {
            self.schedules.reviews.insert(topic, Review { from, until: Some(until) });
        }
        for entry in entries.into_iter().filter(|entry| entry.place.due_at <= until) {
            let is_busy = entry.schedule.progress.parked == Parked::Busy;
            if is_busy && !self.is_last_alive(&entry.schedule)? {
                self.advance_schedule(topic, entry, now, out)?;
            }
        }
        Ok(())
    }

    /// Does what a schedule has to do now, at most one tick, and lets it rest until the next. If
    /// the topic is full, it rests until the tick is tried again.
    pub(crate) fn advance_schedule(
        &mut self,
        topic: TopicNo,
        mut entry: ScheduleEntry,
        now: Now,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        let before = entry.schedule.clone();
        let now_ms = now.on(before.definition.clock());
        let Ok(rule) = before.rule(&self.schedules.zones) else {
            entry.schedule.progress.parked = Parked::Broken;
            let rest = Rest::Until(now_ms.saturating_add(SCHEDULE_RETRY_MS_MAX));
            self.rest_schedule(topic, &mut entry, &before, rest, now, out);
            return Ok(());
        };
        let is_alive = self.is_last_alive(&before)?;
        if let Plan::Give(tick) = entry.schedule.plan(&entry.name, &rule, now_ms, is_alive) {
            if !self.give_tick(topic, &mut entry, tick, now, out)? {
                self.schedules.note_refused(entry.id);
                entry.schedule = before.clone();
                entry.schedule.progress.parked = Parked::No;
                let retry_ms = before.retry_ms(&rule, now_ms);
                let rest = Rest::Until(now_ms.saturating_add(retry_ms));
                self.rest_schedule(topic, &mut entry, &before, rest, now, out);
                return Ok(());
            }
        } else {
            entry.schedule = before.clone();
        }
        self.schedules.overdue.remove(&entry.id);
        let is_alive = self.is_last_alive(&entry.schedule)?;
        let rest = entry.schedule.rest(&entry.name, &rule, now_ms, is_alive);
        self.rest_schedule(topic, &mut entry, &before, rest, now, out);
        Ok(())
    }

    /// Puts the job of a tick; `false` = it was refused.
    fn give_tick(
        &mut self,
        topic: TopicNo,
        entry: &mut ScheduleEntry,
        tick: TickPut,
        now: Now,
        out: &mut Output,
    ) -> Result<bool, Fatal> {
        let Some(value) = self.topics.get(topic) else { return Ok(false) };
        let definition = &entry.schedule.definition;
        let clock = definition.clock();
        let put = definition.template.put(value.name.clone());
        let tick_ms = now.to_wall(clock, tick.tick_ms);
        let origin = TickOrigin { schedule: entry.name.clone(), tick_ms, missed: tick.missed };
        let due = (clock, tick.due_ms);
        // A job that is replaced makes room.
        let replaced = match definition.overlap {
            Overlap::Replace => self.living_job(entry.schedule.progress.last_job)?,
            _ => None,
        };
        let left = replaced.map(|(_, bytes)| bytes);
        let Ok(id) = self.put_tick(now, topic, put, due, Some(Arc::new(origin)), left, out) else {
            return Ok(false);
        };
        if let Some((id, _)) = replaced {
            self.cancel_tick_job(id, now, out)?;
        }
        let last = LastJob { id, tick_ms, put_at: now.wall_ms };
        entry.schedule.progress.last_job = Some(last);
        Ok(true)
    }

    /// A job that still lives, and its bytes.
    fn living_job(&mut self, last: Option<LastJob>) -> Result<Option<(JobId, u32)>, Fatal> {
        let Some(LastJob { id, .. }) = last else { return Ok(None) };
        if let Some(lease) = self.leases.get(id) {
            return Ok(Some((id, u32::try_from(lease.job.bytes()).unwrap_or(u32::MAX))));
        }
        let resting = self.timeline.find(id)?.filter(|found| found.place.class.is_waiting());
        Ok(resting.map(|resting| (id, resting.job.progress.bytes)))
    }

    /// Cancels the job of a tick if it still lives.
    pub(crate) fn cancel_tick_job(
        &mut self,
        id: JobId,
        now: Now,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        if self.is_job_alive(id)? {
            let cancel = Cancel { target: Target::Id(id), unless_leased: false };
            let cancelled = self.cancel_one(now, &cancel, &mut PortionBudget::new(), out);
            super::answered(cancelled)?.ok();
        }
        Ok(())
    }

    /// A schedule goes to rest; the entry knows where then.
    fn rest_schedule(
        &mut self,
        topic: TopicNo,
        entry: &mut ScheduleEntry,
        before: &Schedule,
        rest: Rest,
        now: Now,
        out: &mut Output,
    ) {
        let passed = entry.schedule.progress.counts.since(&before.progress.counts);
        self.schedules.passed.add(&passed);
        let Some(at) = rest_place(topic, entry.id, &entry.schedule, rest, now) else {
            self.remove_schedule_entry(entry, out);
            return;
        };
        let is_parked = |place: &Place| !place.class.is_waiting();
        let stays = at == entry.place || (is_parked(&at) && is_parked(&entry.place));
        if !stays || entry.schedule != *before {
            let (left, created_at) = (Some(entry.place), entry.created_at);
            self.put_schedule_entry(&entry.name, &entry.schedule, created_at, at, left, out);
            entry.place = at;
        }
        self.plan_schedule(topic, entry.place, now);
    }

    /// A new schedule comes to rest.
    pub(crate) fn add_schedule(
        &mut self,
        topic: TopicNo,
        name: &ScheduleName,
        schedule: &Schedule,
        rest: Rest,
        now: Now,
        out: &mut Output,
    ) {
        let Some(at) = rest_place(topic, JobId(self.next_id), schedule, rest, now) else { return };
        self.put_schedule_entry(name, schedule, now.wall_ms, at, None, out);
        self.plan_schedule(topic, at, now);
    }

    fn put_schedule_entry(
        &mut self,
        name: &ScheduleName,
        schedule: &Schedule,
        created_at: u64,
        at: Place,
        left: Option<Place>,
        out: &mut Output,
    ) {
        let content = Content {
            key: Some(Bytes::copy_from_slice(name.as_str().as_bytes())),
            body: schedule.encode(),
            // A job without a lease time is one of which only the id is known.
            ttr_ms: 1,
            put_at: created_at,
            ..Content::default()
        };
        let bytes = u32::try_from(content.bytes()).unwrap_or(u32::MAX);
        let progress = Progress { bytes, ..Progress::default() };
        let job = Job { id: at.id, content, progress };
        let fact = Fact::Put { job, at, left, left_bytes: 0, key_loser: None };
        self.commit(fact, Origin::Live, out);
    }

    fn plan_schedule(&mut self, topic: TopicNo, at: Place, now: Now) {
        if at.class.is_waiting() {
            self.schedules.line.plan_entry(topic, at, now);
        }
    }

    /// A schedule goes.
    pub(crate) fn remove_schedule_entry(&mut self, entry: &ScheduleEntry, out: &mut Output) {
        let name = Bytes::copy_from_slice(entry.name.as_str().as_bytes());
        self.schedules.overdue.remove(&entry.id);
        self.remove_entry(entry.place, Some(name), out);
    }

    /// A schedule changes by request, and rests until its next tick. The entry has it then.
    pub(crate) fn redefine_schedule(
        &mut self,
        topic: TopicNo,
        entry: &mut ScheduleEntry,
        mut schedule: Schedule,
        now: Now,
        out: &mut Output,
    ) -> Rule<()> {
        let rule = schedule.rule(&self.schedules.zones)?;
        let is_alive = self.is_last_alive(&schedule)?;
        let now_ms = now.on(schedule.definition.clock());
        let rest = schedule.rest(&entry.name, &rule, now_ms, is_alive);
        self.schedules.overdue.remove(&entry.id);
        let before = std::mem::replace(&mut entry.schedule, schedule);
        self.rest_schedule(topic, entry, &before, rest, now, out);
        Ok(())
    }
}

/// Where the entry of a schedule rests, unless it has ended.
fn rest_place(
    topic: TopicNo,
    id: JobId,
    schedule: &Schedule,
    rest: Rest,
    now: Now,
) -> Option<Place> {
    let (class, due_at) = match rest {
        Rest::Until(due_ms) => (Class::waiting(0, schedule.definition.clock()), due_ms),
        Rest::Parked => (Class::DEAD, now.steady_ms),
        Rest::Ended => return None,
    };
    Some(Place { topic: topic.schedules(), class, due_at, id })
}
