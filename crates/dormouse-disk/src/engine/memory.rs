//! The engine without files: the same rules, the same loop, nothing to wait for.

use std::sync::Arc;

use dormouse_core::backend::{EventSink, ReplyGroups, Request};
use dormouse_core::error::Fatal;
use dormouse_core::event::Event;
use dormouse_core::machine::{Machine, Output};
use dormouse_core::time::Now;
use dormouse_core::timeline::memory::MemoryTimeline;

use super::inbox::TurnOwner;
use super::meters::RuleMeters;
use super::outbox::Outbox;
use super::turn::{Route, Storage};
use crate::clock::{Reading, SteadyClock, TimeSource};

pub(super) struct MemoryStorage {
    machine: Machine<MemoryTimeline>,
    out: Output,
    watch: Arc<EventSink>,
    events: Vec<Event>,
    clock: SteadyClock,
}

impl MemoryStorage {
    pub(super) fn new(clock: &dyn TimeSource, watch: Arc<EventSink>) -> MemoryStorage {
        let mut machine = Machine::new(MemoryTimeline::default());
        machine.set_zones(jiff::tz::db().clone());
        MemoryStorage {
            machine,
            out: Output::default(),
            watch,
            events: Vec::new(),
            clock: SteadyClock::begin(clock.read()),
        }
    }

    fn route(&mut self, now: Now, route: &mut Route<'_>) {
        if self.watch.is_watched() {
            self.machine.add_events(now, &self.out.facts, &mut self.events);
        }
        self.out.facts.clear();
        for (ticket, answer, when) in self.out.answers.drain(..) {
            route(ticket, answer, when);
        }
    }
}

impl Storage for MemoryStorage {
    fn now(&self, reading: Reading) -> Now {
        self.clock.now(reading)
    }

    fn step(&mut self, now: Now, request: Request, route: &mut Route<'_>) -> Result<(), Fatal> {
        self.machine.step(now, request, &mut self.out)?;
        self.route(now, route);
        Ok(())
    }

    fn tick(&mut self, now: Now, route: &mut Route<'_>) -> Result<(), Fatal> {
        self.machine.tick(now, &mut self.out)?;
        self.route(now, route);
        Ok(())
    }

    fn continue_long(&mut self, now: Now, route: &mut Route<'_>) -> Result<(), Fatal> {
        self.machine.continue_long(now, &mut self.out)?;
        self.route(now, route);
        Ok(())
    }

    fn has_long_commands(&self) -> bool {
        self.machine.has_long_commands()
    }

    fn next_wake(&self, now: Now) -> Option<u64> {
        self.machine.next_wake(now)
    }

    fn note(&self, meters: &RuleMeters) {
        meters.note(&self.machine);
    }

    fn end_turn(
        &mut self,
        _now: Now,
        _owner: TurnOwner,
        waiting: &mut ReplyGroups,
        outbox: &Outbox,
    ) -> Result<(), Fatal> {
        outbox.push(&mut self.events, waiting);
        Ok(())
    }

    fn close(
        &mut self,
        _now: Now,
        waiting: &mut ReplyGroups,
        outbox: &Outbox,
    ) -> Result<(), Fatal> {
        outbox.push(&mut self.events, waiting);
        Ok(())
    }
}
