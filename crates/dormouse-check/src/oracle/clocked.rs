//! The rules over a map, with a clock that passes every instant that matters.

use dormouse_core::backend::{Answer, Request, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::State;
use dormouse_core::machine::{Machine, Output};
use dormouse_core::op::{GetSchedule, JobView, List, ListRange, ScheduleView, Stats};
use dormouse_core::time::Now;
use dormouse_core::timeline::memory::MemoryTimeline;
use dormouse_core::topic::TopicName;

/// See the module.
pub(crate) struct Oracle {
    machine: Machine<MemoryTimeline>,
    out: Output,
    now_ms: u64,
}

impl Oracle {
    pub(crate) fn new(now_ms: u64) -> Oracle {
        let mut machine = Machine::new(MemoryTimeline::new());
        machine.set_zones(jiff::tz::db().clone());
        Oracle { machine, out: Output::default(), now_ms }
    }

    /// The one clock that Redis has is both clocks here.
    pub(crate) fn now(&self) -> Now {
        Now { steady_ms: self.now_ms, wall_ms: self.now_ms, fraction: false }
    }

    /// Applies a command.
    pub(crate) fn step(&mut self, ticket: Ticket, command: Command) -> Result<(), String> {
        let stepped = self.machine.step(self.now(), Request::new(ticket, command), &mut self.out);
        stepped.map_err(|error| error.to_string())
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self) -> Result<(), String> {
        let now = self.now();
        let ticked = self.machine.tick(now, &mut self.out);
        let ticked = ticked.and_then(|()| self.machine.continue_long(now, &mut self.out));
        self.out.facts.clear();
        ticked.map_err(|error| error.to_string())
    }

    /// Answers since the last call.
    pub(crate) fn answers(&mut self) -> Vec<(Ticket, Answer)> {
        self.out.answers.drain(..).map(|(ticket, answer, _)| (ticket, answer)).collect()
    }

    /// Time passes up to the next instant that matters, at most up to `until_ms`.
    pub(crate) fn advance(&mut self, until_ms: u64) -> Result<(), String> {
        let next_ms = self.next_instant().unwrap_or(until_ms);
        self.now_ms = next_ms.max(self.now_ms + 1).min(until_ms);
        self.tick()
    }

    /// The next instant at which something happens by itself.
    pub(crate) fn next_instant(&self) -> Option<u64> {
        self.machine.next_wake(self.now()).map(|ms| self.now_ms + ms)
    }

    /// The answer to a look.
    fn look(&mut self, command: Command) -> Option<Reply> {
        let before = std::mem::take(&mut self.out.answers);
        let ticket = Ticket::next();
        let stepped = self.step(ticket, command);
        let answer = std::mem::replace(&mut self.out.answers, before).pop();
        stepped.ok().and(answer)?.1.ok()
    }

    /// A job as it is.
    pub(crate) fn view(&mut self, id: dormouse_core::job::JobId) -> Option<JobView> {
        match self.look(Command::Get(vec![dormouse_core::op::Target::Id(id)]))? {
            Reply::Views(mut views) => views.pop()?.ok(),
            _ => None,
        }
    }

    /// A schedule as it is.
    pub(crate) fn schedule(&mut self, get: GetSchedule) -> Option<ScheduleView> {
        match self.look(Command::GetSchedule(get))? {
            Reply::Schedule(view) => Some(*view),
            _ => None,
        }
    }

    /// Whether reserve gives nothing from this topic.
    pub(crate) fn is_paused(&mut self, topic: &TopicName) -> bool {
        let stats = Command::Stats(Stats { topic: Some(topic.clone()) });
        matches!(self.look(stats), Some(Reply::Stats(stats)) if stats.paused.is_some())
    }

    /// All jobs of a state; there are never more than a page.
    pub(crate) fn all(&mut self, topic: &TopicName, state: State) -> Vec<JobView> {
        let list = List {
            topic: topic.clone(),
            state,
            cursor: None,
            limit: 1_000,
            range: ListRange::default(),
        };
        match self.look(Command::List(list)) {
            Some(Reply::Page(page)) => page.jobs,
            _ => Vec::new(),
        }
    }
}
