//! The engine without files: the same rules, the same loop, nothing to wait for.

use dormouse_core::backend::Ticket;
use dormouse_core::command::Command;
use dormouse_core::error::Error;
use dormouse_core::machine::{Machine, Output};
use dormouse_core::time::Now;
use dormouse_core::timeline::memory::MemoryTimeline;

use super::answers::Outgoing;
use super::meters::RuleMeters;
use super::turn::{Keeper, Route};
use crate::clock::{Reading, SteadyClock, TimeSource};

pub(super) struct MemoryKeeper {
    machine: Machine<MemoryTimeline>,
    out: Output,
    clock: SteadyClock,
}

impl MemoryKeeper {
    pub(super) fn new(clock: &dyn TimeSource) -> MemoryKeeper {
        MemoryKeeper {
            machine: Machine::new(MemoryTimeline::default()),
            out: Output::default(),
            clock: SteadyClock::begin(clock.read()),
        }
    }

    fn route(&mut self, route: &mut Route<'_>) {
        self.out.facts.clear();
        for (ticket, answer, when) in self.out.answers.drain(..) {
            route(ticket, answer, when);
        }
    }
}

impl Keeper for MemoryKeeper {
    fn now(&self, reading: Reading) -> Now {
        self.clock.now(reading)
    }

    fn step(
        &mut self,
        now: Now,
        ticket: Ticket,
        command: Command,
        route: &mut Route<'_>,
    ) -> Result<(), Error> {
        self.machine.step(now, ticket, command, &mut self.out)?;
        self.route(route);
        Ok(())
    }

    fn tick(&mut self, now: Now, route: &mut Route<'_>) -> Result<(), Error> {
        self.machine.tick(now, &mut self.out)?;
        self.route(route);
        Ok(())
    }

    fn next_wake(&self, now: Now) -> Option<u64> {
        self.machine.next_wake(now)
    }

    fn note(&self, meters: &RuleMeters) {
        meters.note(&self.machine);
    }

    fn end_turn(&mut self, _now: Now, waiting: &mut Outgoing) -> Result<(), Error> {
        waiting.deliver();
        Ok(())
    }

    fn close(&mut self, _now: Now, waiting: &mut Outgoing) -> Result<(), Error> {
        waiting.deliver();
        Ok(())
    }
}
