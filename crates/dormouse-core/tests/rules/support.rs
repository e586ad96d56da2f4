//! A machine over the timeline in memory, with a clock the test moves.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use dormouse_core::backend::{Answer, Request, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::fact::Fact;
use dormouse_core::holder::HolderId;
use dormouse_core::image::Counts;
use dormouse_core::job::{Job, JobId, State, Token};
use dormouse_core::machine::{Machine, Output};
use dormouse_core::op::*;
use dormouse_core::place::{Class, Place};
use dormouse_core::schedule::{RuleSpec, Schedule};
use dormouse_core::time::Now;
use dormouse_core::timeline::memory::MemoryTimeline;
use dormouse_core::topic::{Settings, TopicName, TopicNo};
use jiff::tz::TimeZoneDatabase;

/// Both clocks start here, with different readings so that mixing them up shows.
pub(crate) const STEADY_0: u64 = 1_000_000;
pub(crate) const WALL_0: u64 = 5_000_000;

pub(crate) fn topic(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

pub(crate) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub(crate) struct Rig {
    pub(crate) machine: Machine<MemoryTimeline>,
    pub(crate) now: Now,
    pub(crate) facts: Vec<Fact>,
    answers: BTreeMap<Ticket, Answer>,
    out: Output,
    tickets: u64,
}

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig {
            machine: Machine::new(MemoryTimeline::new()),
            now: Now { steady_ms: STEADY_0, wall_ms: WALL_0, fraction: false },
            facts: Vec::new(),
            answers: BTreeMap::new(),
            out: Output::default(),
            tickets: 0,
        }
    }

    fn collect(&mut self) {
        self.facts.append(&mut self.out.facts);
        for (ticket, answer, _) in self.out.answers.drain(..) {
            assert!(self.answers.insert(ticket, answer).is_none(), "{ticket:?} answered twice");
        }
        counts_add_up(&self.machine);
        keys_are_unique(&self.machine);
    }

    /// Submits a command that may wait, without a tick.
    pub(crate) fn begin(&mut self, command: Command) -> Ticket {
        self.begin_by(None, command)
    }

    /// As `begin`; what it takes counts for this holder.
    pub(crate) fn begin_by(&mut self, holder: Option<HolderId>, command: Command) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let request = Request { holder, ..Request::new(ticket, command) };
        self.machine.step(self.now, request, &mut self.out).unwrap();
        self.collect();
        ticket
    }

    pub(crate) fn answer(&mut self, ticket: Ticket) -> Option<Answer> {
        self.answers.remove(&ticket)
    }

    pub(crate) fn tick(&mut self) {
        self.machine.tick(self.now, &mut self.out).unwrap();
        self.machine.continue_long(self.now, &mut self.out).unwrap();
        self.collect();
        deadlines_are_there(&self.machine);
    }

    /// A command, and the tick that follows it.
    pub(crate) fn run(&mut self, command: Command) -> Answer {
        self.run_by(None, command)
    }

    /// As `run`; what it takes counts for this holder.
    pub(crate) fn run_by(&mut self, holder: Option<HolderId>, command: Command) -> Answer {
        let ticket = self.begin_by(holder, command);
        let answer = self.answer(ticket).expect("the command waits");
        self.tick();
        answer
    }

    /// Time goes by as a driver lets it: a tick at each instant that matters.
    pub(crate) fn pass(&mut self, ms: u64) {
        let mut left_ms = ms;
        loop {
            let step_ms = self.machine.next_wake(self.now).unwrap_or(u64::MAX).min(left_ms);
            self.now.steady_ms += step_ms;
            self.now.wall_ms += step_ms;
            left_ms -= step_ms;
            self.tick();
            if left_ms == 0 && self.machine.next_wake(self.now) != Some(0) {
                return;
            }
        }
    }

    pub(crate) fn try_put(&mut self, put: Put) -> Result<PutReply, Error> {
        match self.run(Command::Put(vec![put]))? {
            Reply::Put(mut replies) => replies.pop().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn put(&mut self, put: Put) -> JobId {
        self.try_put(put).unwrap().id
    }

    /// A job due now.
    pub(crate) fn put_now(&mut self, name: &str) -> JobId {
        self.put(Put::new(topic(name), "body"))
    }

    pub(crate) fn put_in(&mut self, name: &str, delay_ms: i64) -> JobId {
        self.put(Put { delay_ms: Some(delay_ms), ..Put::new(topic(name), "body") })
    }

    pub(crate) fn reserve(&mut self, names: &[&str], max: usize) -> Vec<LeasedJob> {
        jobs(self.run(Command::Reserve(reserve(names, max, 0))))
    }

    /// The one job that is due in the topic.
    pub(crate) fn take(&mut self, name: &str) -> LeasedJob {
        let mut taken = self.reserve(&[name], 1);
        taken.pop().expect("nothing is due")
    }

    pub(crate) fn ack(&mut self, token: Token) -> Result<EndReply, Error> {
        ended(self.run(Command::Ack(vec![token])))
    }

    pub(crate) fn nack(&mut self, token: Token) -> Result<EndReply, Error> {
        let nack = Nack { token, delay_ms: None, priority: None, error: None };
        ended(self.run(Command::Nack(vec![nack])))
    }

    pub(crate) fn release(&mut self, token: Token) -> Result<EndReply, Error> {
        let release = Release { token, delay_ms: None, priority: None };
        ended(self.run(Command::Release(vec![release])))
    }

    pub(crate) fn extend(&mut self, token: Token, ttr_ms: Option<i64>) -> Result<u64, Error> {
        match self.run(Command::Extend(vec![Extend { token, ttr_ms }]))? {
            Reply::Extended(mut replies) => replies.pop().unwrap().map(|reply| reply.expires_at),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn kill(&mut self, target: KillTarget) -> Result<EndReply, Error> {
        let kill = Kill { target, error: None, priority: None };
        ended(self.run(Command::Kill(vec![kill])))
    }

    pub(crate) fn cancel(&mut self, target: Target) -> Result<ChangeReply, Error> {
        changed(self.run(Command::Cancel(vec![Cancel { target, unless_leased: false }])))
    }

    pub(crate) fn run_now(&mut self, target: Target) -> Result<ChangeReply, Error> {
        let item = Reschedule { target, delay_ms: None, at_ms: None };
        changed(self.run(Command::Reschedule(vec![item])))
    }

    pub(crate) fn revive(&mut self, target: Target) -> Result<ChangeReply, Error> {
        changed(self.run(Command::Revive(vec![target])))
    }

    pub(crate) fn view(&mut self, target: Target) -> Result<JobView, Error> {
        match self.run(Command::Get(vec![target]))? {
            Reply::Views(mut views) => views.pop().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn state(&mut self, id: JobId) -> Option<State> {
        self.view(Target::Id(id)).ok().map(|view| view.state)
    }

    pub(crate) fn stats(&mut self, name: &str) -> Result<TopicStats, Error> {
        match self.run(Command::Stats(Stats { topic: Some(topic(name)) }))? {
            Reply::Stats(stats) => Ok(*stats),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn set(&mut self, name: &str, settings: Settings) {
        let set = SetTopic { topic: topic(name), settings };
        assert_eq!(self.run(Command::from(set)), Ok(Reply::Done));
    }

    pub(crate) fn session(&mut self) -> SessionId {
        match self.run(Command::OpenSession) {
            Ok(Reply::Session(session)) => session,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn reserve(names: &[&str], max: usize, wait_ms: i64) -> Reserve {
    let topics = names.iter().map(|name| topic(name)).collect();
    Reserve { topics, max, wait_ms, ttr_ms: None, session: None }
}

pub(crate) fn jobs(answer: Answer) -> Vec<LeasedJob> {
    match answer.unwrap() {
        Reply::Jobs(jobs) => jobs,
        other => panic!("{other:?}"),
    }
}

/// Whether an error has this code and these words.
pub(crate) fn says(error: &Error, code: Code, words: &[&str]) {
    assert_eq!(error.code, code, "{error}");
    for word in words {
        assert!(error.text.contains(word), "{error} does not say {word}");
    }
}

pub(crate) fn ids(jobs: &[LeasedJob]) -> Vec<u64> {
    jobs.iter().map(|job| job.id.0).collect()
}

fn ended(answer: Answer) -> Result<EndReply, Error> {
    match answer? {
        Reply::Ended(mut replies) => replies.pop().unwrap(),
        other => panic!("{other:?}"),
    }
}

fn changed(answer: Answer) -> Result<ChangeReply, Error> {
    match answer? {
        Reply::Changed(mut replies) => replies.pop().unwrap(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn code<R: std::fmt::Debug>(result: Result<R, Error>) -> Code {
    result.unwrap_err().code
}

pub(crate) fn by_key(name: &str, key: &str) -> Target {
    Target::Key { topic: topic(name), key: bytes(key) }
}

/// The counts are what counting everything one by one gives.
pub(crate) fn counts_add_up(machine: &Machine<MemoryTimeline>) {
    let mut found: BTreeMap<TopicNo, Counts> = BTreeMap::new();
    let mut schedules: BTreeMap<TopicNo, u64> = BTreeMap::new();
    for (place, job) in machine.timeline().iter() {
        if let Some(topic) = place.topic.scheduled_topic() {
            *schedules.entry(topic).or_default() += 1;
            ticks_add_up(&job.content.body);
            continue;
        }
        if place.topic.deadline_topic().is_some() {
            continue;
        }
        let counts = found.entry(place.topic).or_default();
        counts.waiting += u64::from(place.class.is_waiting());
        counts.dead += u64::from(place.class == Class::DEAD);
        if place.class == Class::DONE {
            counts.done += 1;
            continue;
        }
        counts.bytes += u64::from(job.progress.bytes);
    }
    for lease in machine.lease_images() {
        let counts = found.entry(lease.topic).or_default();
        counts.leased += 1;
        counts.bytes += u64::from(lease.job.progress.bytes);
    }
    let mut totals = machine.machine_image().gone;
    for image in machine.topic_images() {
        let found = found.remove(&image.topic).unwrap_or_default();
        let numbers = |c: &Counts| [c.waiting, c.leased, c.dead, c.done, c.bytes];
        totals.add(&image.counts);
        assert_eq!(numbers(&image.counts), numbers(&found), "{image:?}");
        assert_eq!(image.schedules, schedules.remove(&image.topic).unwrap_or(0), "{image:?}");
    }
    assert!(schedules.is_empty(), "schedules of topics that are not there: {schedules:?}");
    assert!(found.is_empty(), "jobs of topics that are not there: {found:?}");
    assert_eq!(machine.totals(), totals);
}

/// The law of ticks, of schedules whose recurrence is the first they had.
fn ticks_add_up(record: &Bytes) {
    let schedule = Schedule::decode(record).unwrap();
    let rule = schedule.rule(&TimeZoneDatabase::none()).unwrap();
    let progress = &schedule.progress;
    if schedule.version == 1
        && matches!(schedule.definition.recurrence.spec, RuleSpec::Every { .. })
    {
        let passed = rule.count(progress.anchor_ms, progress.last_ms);
        assert_eq!(progress.counts.total(), passed, "{schedule:?}");
    }
}

/// Every waiting job with a span has an entry at its deadline, and there are no others.
pub(crate) fn deadlines_are_there(machine: &Machine<MemoryTimeline>) {
    let is_entry = |place: &Place| place.topic.deadline_topic().is_some();
    let entries = machine.timeline().iter().map(|(place, _)| place).filter(is_entry);
    let entries: BTreeSet<Place> = entries.collect();
    let expires = |(place, job): &(Place, &Job)| {
        let is_job = place.topic.is_topic() && place.class.is_waiting();
        is_job && job.content.expires_after_ms > 0
    };
    let wanted = machine.timeline().iter().filter(expires).map(|(place, job)| Place {
        topic: place.topic.deadlines(),
        class: Class::waiting(0, place.class.clock()),
        due_at: place.due_at + job.content.expires_after_ms,
        id: job.id.deadline(),
    });
    assert_eq!(entries, wanted.collect::<BTreeSet<Place>>());
}

/// No two jobs have the same key, and none has one that is held.
fn keys_are_unique(machine: &Machine<MemoryTimeline>) {
    let mut seen = BTreeSet::new();
    let leases: Vec<_> = machine.lease_images().collect();
    let leased = leases.iter().map(|lease| (lease.topic, &lease.job));
    let resting = machine.timeline().iter().map(|(place, job)| (place.topic, job));
    for (topic, job) in leased.chain(resting) {
        if let Some(key) = job.key() {
            assert!(seen.insert((topic, key.clone())), "{key:?} of {topic:?} is there twice");
        }
    }
}
