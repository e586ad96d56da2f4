//! Schedules: rules that put a job at each of their ticks.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use dormouse_core::backoff::Backoff;
use dormouse_core::error::Error;
use dormouse_core::limits::PAGE_MAX;
use dormouse_core::op::{
    self, PutReply, PutScheduleReply, ScheduleChange, ScheduleConflict, ScheduleView, SchedulesPage,
};
use dormouse_core::schedule::{Catchup, Overlap, ScheduleName, Template};
use dormouse_core::topic::TopicName;

use crate::body::Body;
use crate::call::{Call, Items};
use crate::queue::Queue;
use crate::rule::Rule;
use crate::time::{span_ms, wall_ms};

fn named(topic: &str, name: &str) -> Result<(TopicName, ScheduleName), Error> {
    Ok((TopicName::new(topic)?, ScheduleName::new(name)?))
}

impl Queue {
    /// Puts a job with this body into the topic at each tick of the rule, whether or not somebody
    /// waits for it. The same definition again changes nothing, so it can be said at each start.
    ///
    /// ```
    /// # use dormouse::{Overlap, Queue, Rule, VirtualClock};
    /// # use std::time::Duration;
    /// let clock = VirtualClock::new();
    /// let queue = Queue::builder().clock(clock.clone()).memory();
    /// let rule = Rule::every(Duration::from_secs(60));
    /// let reply = queue.schedule("feeds", "poll", rule, "all").overlap(Overlap::Wait).wait()?;
    /// assert_eq!(reply.words, "every 1m");
    ///
    /// clock.advance(Duration::from_secs(61));
    /// let jobs = queue.reserve("feeds").wait_for(Duration::from_secs(5)).wait()?;
    /// assert_eq!(jobs[0].schedule(), Some("poll"));
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    pub fn schedule(
        &self,
        topic: &str,
        name: &str,
        rule: Rule,
        body: impl Into<Body>,
    ) -> Call<op::PutSchedule, PutScheduleReply> {
        let options = named(topic, name).map(|(topic, name)| {
            let (body, body_kind) = body.into().into_parts();
            let template = Template { body, body_kind, ..Template::default() };
            let mut put = op::PutSchedule::new(topic, name, template);
            rule.fill(&mut put);
            put
        });
        Call::new(self, options, Queue::call)
    }

    /// A schedule as it is now: its next ticks, and what became of those that passed.
    pub fn get_schedule(&self, topic: &str, name: &str) -> Call<op::GetSchedule, ScheduleView> {
        let options = named(topic, name).map(|(topic, name)| op::GetSchedule { topic, name });
        Call::new(self, options, Queue::call)
    }

    /// A page of a topic's schedules, those first that tick first.
    pub fn schedules(&self, topic: &str) -> Call<op::Schedules, SchedulesPage> {
        let options = TopicName::new(topic).map(|topic| op::Schedules {
            topic,
            state: None,
            cursor: None,
            limit: PAGE_MAX,
        });
        Call::new(self, options, Queue::call)
    }

    /// Removes a schedule; its jobs stay, unless [`cancel_job`](Call::cancel_job) is set.
    pub fn unschedule(&self, topic: &str, name: &str) -> Call<op::RemoveSchedule, ()> {
        let options = named(topic, name).map(|(topic, name)| op::RemoveSchedule {
            topic,
            name,
            cancel_job: false,
        });
        Call::new(self, options, Queue::call)
    }

    /// No ticks, and none of them later, until [`resume_schedule`](Queue::resume_schedule) or for a
    /// given [`span`](Call::span).
    pub fn pause_schedule(
        &self,
        topic: &str,
        name: &str,
    ) -> Call<op::ChangeSchedule, ScheduleView> {
        self.change_schedule(topic, name, ScheduleChange::Pause { for_ms: None })
    }

    /// Ends a pause.
    pub fn resume_schedule(
        &self,
        topic: &str,
        name: &str,
    ) -> Call<op::ChangeSchedule, ScheduleView> {
        self.change_schedule(topic, name, ScheduleChange::Resume)
    }

    /// Leaves out the next tick.
    pub fn skip_tick(&self, topic: &str, name: &str) -> Call<op::ChangeSchedule, ScheduleView> {
        self.change_schedule(topic, name, ScheduleChange::Skip)
    }

    /// Lets the next tick be the first after now, whatever was still to be given.
    pub fn replan(&self, topic: &str, name: &str) -> Call<op::ChangeSchedule, ScheduleView> {
        self.change_schedule(topic, name, ScheduleChange::Replan)
    }

    fn change_schedule(
        &self,
        topic: &str,
        name: &str,
        change: ScheduleChange,
    ) -> Call<op::ChangeSchedule, ScheduleView> {
        let options =
            named(topic, name).map(|(topic, name)| op::ChangeSchedule { topic, name, change });
        Call::new(self, options, Queue::call)
    }

    /// Puts one job of the schedule now, or one for each tick [`between`](Call::between) two
    /// instants. The ticks go on as if nothing had happened.
    pub fn run_schedule(&self, topic: &str, name: &str) -> Call<op::RunSchedule, Items<PutReply>> {
        let options =
            named(topic, name).map(|(topic, name)| op::RunSchedule { topic, name, ticks: None });
        Call::new(self, options, Queue::call)
    }
}

impl Call<op::PutSchedule, PutScheduleReply> {
    /// A tick while an earlier job of the schedule lives; [`Overlap::Skip`] unless given.
    pub fn overlap(self, overlap: Overlap) -> Self {
        self.set(|put| put.overlap = Some(overlap))
    }

    /// Ticks that passed while nothing ran; [`Catchup::One`] unless given.
    pub fn catchup(self, catchup: Catchup) -> Self {
        self.set(|put| put.catchup = Some(catchup))
    }

    /// A tick that is later than this is missed.
    pub fn late_max(self, late_max: Duration) -> Self {
        self.set(|put| put.late_max_ms = Some(span_ms(late_max)))
    }

    /// A job is due up to so much after its tick, always the same for the same tick.
    pub fn jitter(self, jitter: Duration) -> Self {
        self.set(|put| put.jitter_ms = Some(span_ms(jitter)))
    }

    /// No tick before this; a rule of equal distances is counted from it.
    pub fn start_at(self, at: SystemTime) -> Self {
        self.set(|put| put.start_at_ms = Some(wall_ms(at)))
    }

    /// No tick after this.
    pub fn end_at(self, at: SystemTime) -> Self {
        self.set(|put| put.end_at_ms = Some(wall_ms(at)))
    }

    /// The schedule ends after so many jobs.
    pub fn ticks_max(self, ticks_max: u64) -> Self {
        self.set(|put| put.ticks_max = Some(ticks_max))
    }

    /// What to do if there is a schedule of this name; it is replaced unless given.
    pub fn on_conflict(self, on_conflict: ScheduleConflict) -> Self {
        self.set(|put| put.on_conflict = on_conflict)
    }

    /// Only if the schedule has this version; else `conflict`.
    pub fn if_version(self, version: u64) -> Self {
        self.set(|put| put.if_version = Some(version))
    }

    /// Of the due jobs, the one with the lowest priority is taken first; 1024 unless given.
    pub fn priority(self, priority: u32) -> Self {
        self.set(|put| put.template.priority = Some(priority))
    }

    /// How long a lease lasts unless extended; 60 s unless given.
    pub fn ttr(self, ttr: Duration) -> Self {
        self.set(|put| put.template.ttr_ms = Some(span_ms(ttr)))
    }

    /// After this many attempts a job is dead; 16 unless given, 0 = no limit.
    pub fn attempts_max(self, attempts_max: u32) -> Self {
        self.set(|put| put.template.attempts_max = Some(attempts_max))
    }

    /// The delay after a failed attempt; 1 s doubling up to 10 minutes unless given.
    pub fn backoff(self, backoff: Backoff) -> Self {
        self.set(|put| put.template.backoff = Some(Arc::new(backoff)))
    }

    /// A job dies if nobody takes it so long after it was due; as the topic says unless given.
    pub fn expires_after(self, expires_after: Duration) -> Self {
        self.set(|put| put.template.expires_after_ms = Some(span_ms(expires_after)))
    }

    /// What the topic's limits of groups are counted by; a job without one has no such limits.
    pub fn group(self, group: impl AsRef<[u8]>) -> Self {
        self.set(|put| put.template.group = Some(Bytes::copy_from_slice(group.as_ref())))
    }

    /// Adds a header to each job.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set(|put| {
            let headers = put.template.headers.get_or_insert_default();
            Arc::make_mut(headers).push((name.into(), value.into()));
        })
    }
}

impl Call<op::RemoveSchedule, ()> {
    /// Its newest job is cancelled, too, if it still lives.
    pub fn cancel_job(self) -> Self {
        self.set(|remove| remove.cancel_job = true)
    }
}

impl Call<op::ChangeSchedule, ScheduleView> {
    /// Of a pause: it ends by itself after this span.
    pub fn span(self, span: Duration) -> Self {
        self.set(|change| {
            if let ScheduleChange::Pause { for_ms } = &mut change.change {
                *for_ms = Some(span_ms(span));
            }
        })
    }
}

impl Call<op::RunSchedule, Items<PutReply>> {
    /// A job for each tick from one instant to before another, at most 1,000.
    pub fn between(self, from: SystemTime, to: SystemTime) -> Self {
        self.set(|run| run.ticks = Some((wall_ms(from), wall_ms(to))))
    }
}

impl Call<op::Schedules, SchedulesPage> {
    /// Where the last page ended.
    pub fn cursor(self, cursor: impl Into<String>) -> Self {
        self.set(|page| page.cursor = Some(cursor.into()))
    }

    /// How many at most; 1,000 unless given.
    pub fn limit(self, limit: usize) -> Self {
        self.set(|page| page.limit = limit)
    }
}
