//! The rules over a map, with a memory of every batch.

use std::collections::BTreeMap;

use dormouse_core::backend::{Answer, Request, Ticket};
use dormouse_core::command::Command;
use dormouse_core::error::Fatal;
use dormouse_core::fact::Fact;
use dormouse_core::image::{LeaseImage, LockImage, MachineImage, TopicImage};
use dormouse_core::machine::{Machine, Output, When};
use dormouse_core::place::{Class, Place};
use dormouse_core::time::Now;
use dormouse_core::timeline::memory::MemoryTimeline;

use super::deadlines::check_deadlines;
use super::ticks::check_ticks;

/// A checkpoint, and the jobs that rested then.
#[derive(Clone)]
struct Snapshot {
    batch: u64,
    machine: MachineImage,
    topics: Vec<TopicImage>,
    leases: Vec<LeaseImage>,
    locks: Vec<LockImage>,
    timeline: MemoryTimeline,
}

/// See the module.
pub struct Oracle {
    /// The rules.
    pub machine: Machine<MemoryTimeline>,
    out: Output,
    /// Facts since the last seal.
    open: Vec<Fact>,
    batches: BTreeMap<u64, Vec<Fact>>,
    /// By segment.
    checkpoints: BTreeMap<u64, Snapshot>,
}

impl Oracle {
    /// A store that has just been made: batch 1 is the checkpoint of segment 1.
    pub fn new() -> Oracle {
        let mut oracle = Oracle {
            machine: Machine::new(MemoryTimeline::new()),
            out: Output::default(),
            open: Vec::new(),
            batches: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
        };
        oracle.checkpoint(1, 1);
        oracle.synced(1);
        oracle
    }

    /// Another one with the same memory, to be put back to a batch by [`Oracle::recover`].
    pub fn fork(&self) -> Oracle {
        Oracle {
            batches: self.batches.clone(),
            checkpoints: self.checkpoints.clone(),
            ..Oracle::new()
        }
    }

    /// Applies a command.
    pub fn step(&mut self, now: Now, ticket: Ticket, command: Command) -> Result<(), Fatal> {
        self.machine.step(now, Request::new(ticket, command), &mut self.out)?;
        self.open.append(&mut self.out.facts);
        Ok(())
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Now) -> Result<(), Fatal> {
        self.machine.tick(now, &mut self.out)?;
        self.machine.continue_long(now, &mut self.out)?;
        self.open.append(&mut self.out.facts);
        Ok(())
    }

    /// Answers since the last call.
    pub fn answers(&mut self) -> Vec<(Ticket, Answer, When)> {
        std::mem::take(&mut self.out.answers)
    }

    /// Facts since the last seal.
    pub fn open_facts(&self) -> &[Fact] {
        &self.open
    }

    /// The open facts became this batch.
    pub fn seal(&mut self, batch: u64) {
        self.batches.insert(batch, std::mem::take(&mut self.open));
        self.machine.set_batch(batch + 1);
    }

    /// A checkpoint became the first batch of a segment.
    pub fn checkpoint(&mut self, segment: u64, batch: u64) {
        let snapshot = Snapshot {
            batch,
            machine: self.machine.machine_image(),
            topics: self.machine.topic_images().collect(),
            leases: self.machine.lease_images().collect(),
            locks: self.machine.lock_images().collect(),
            timeline: self.machine.timeline().clone(),
        };
        self.checkpoints.insert(segment, snapshot);
        self.seal(batch);
    }

    /// Puts up to this batch may be handed out.
    pub fn synced(&mut self, batch: u64) {
        self.machine.timeline_mut().set_synced(batch);
        self.machine.synced();
    }

    /// Goes back to the end of this batch, by the checkpoint that the manifest names, and starts
    /// again under this epoch. Everything later never happened.
    ///
    /// The same state must come out of all facts since the beginning: what a checkpoint forgot
    /// would show there.
    pub fn recover(
        &mut self,
        first_segment: u64,
        last_batch: u64,
        epoch: u32,
        now: Now,
    ) -> Result<(), String> {
        self.batches.split_off(&(last_batch + 1));
        self.checkpoints.retain(|_, snapshot| snapshot.batch <= last_batch);
        let Some(snapshot) = self.checkpoints.get(&first_segment) else {
            return Err(format!("the manifest names segment {first_segment}, not a checkpoint's"));
        };
        let mut machine = restored(snapshot);
        let mut from_start = Machine::new(MemoryTimeline::new());
        for (number, facts) in &self.batches {
            for fact in facts {
                from_start.replay(fact.clone());
                if *number > snapshot.batch {
                    machine.replay(fact.clone());
                }
            }
        }
        let mut out_from_start = Output::default();
        for (machine, out) in
            [(&mut machine, &mut self.out), (&mut from_start, &mut out_from_start)]
        {
            out.answers.clear();
            out.facts.clear();
            machine.set_epoch(epoch);
            machine.recovered(now, out).map_err(|error| error.to_string())?;
        }
        if self.out.facts != out_from_start.facts {
            return Err(format!(
                "a start from the checkpoint decides {:?}, from the beginning {:?}",
                self.out.facts, out_from_start.facts
            ));
        }
        same_state(&machine, &from_start)?;
        self.open = std::mem::take(&mut self.out.facts);
        self.machine = machine;
        self.seal(last_batch + 1);
        self.synced(last_batch + 1);
        Ok(())
    }
}

impl Default for Oracle {
    fn default() -> Oracle {
        Oracle::new()
    }
}

fn restored(snapshot: &Snapshot) -> Machine<MemoryTimeline> {
    let mut machine = Machine::new(snapshot.timeline.clone());
    machine.restore_machine(snapshot.machine);
    snapshot.topics.iter().cloned().for_each(|image| machine.restore_topic(image));
    snapshot.leases.iter().cloned().for_each(|image| machine.restore_lease(image));
    snapshot.locks.iter().cloned().for_each(|image| machine.restore_lock(image));
    machine
}

/// Whether two machines know the same, but for holds, which are forgotten without a fact.
fn same_state(
    one: &Machine<MemoryTimeline>,
    other: &Machine<MemoryTimeline>,
) -> Result<(), String> {
    let lasts = |place: &Place| place.class != Class::HOLD;
    for machine in [one, other] {
        check_deadlines(machine).map_err(|error| format!("after a start {error}"))?;
        check_ticks(machine).map_err(|error| format!("after a start {error}"))?;
    }
    let parts = |machine: &Machine<MemoryTimeline>| {
        let bare = |image| TopicImage { has_deadlines: false, has_parked: false, ..image };
        let topics: Vec<TopicImage> = machine.topic_images().map(bare).collect();
        let leases: Vec<LeaseImage> = machine.lease_images().collect();
        let locks: Vec<LockImage> = machine.lock_images().collect();
        let jobs: Vec<_> = machine
            .timeline()
            .iter()
            .filter(|(place, _)| lasts(place))
            .map(|(place, job)| (place, job.clone()))
            .collect();
        (machine.machine_image(), machine.totals(), topics, leases, locks, jobs)
    };
    let (from_checkpoint, from_start) = (parts(one), parts(other));
    if from_checkpoint == from_start {
        return Ok(());
    }
    Err(format!(
        "the checkpoint forgot something:\n  from it {from_checkpoint:?}\n  from the beginning \
         {from_start:?}"
    ))
}
