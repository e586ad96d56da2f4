//! Drives a [`Store`] as the engine does, but one action at a time, so that a test can put
//! anything between any two of them: a command, another action, a crash.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use dormouse_core::backend::{Answer, Request, Ticket};
use dormouse_core::command::Command;
use dormouse_core::machine::When;
use dormouse_core::time::Now;
use dormouse_disk::clock::{Reading, SteadyClock};
use dormouse_disk::disk::Disk;
use dormouse_disk::journal::SegmentWriter;
use dormouse_disk::store::{
    OpenError, RecoveredStore, SegmentBatch, Sizes, Store, Task, TaskResult,
};

use crate::faults::disk::SimDisk;

/// Why an action was not done.
#[derive(Debug)]
pub enum Trouble {
    /// The power is off: crash the disk and open it again.
    Off,
    /// The store failed though the disk did not, or the other way round.
    Bug(String),
}

/// The clocks of the simulated machine.
#[derive(Clone, Copy, Debug)]
pub struct SimTime {
    /// The time of both clocks.
    pub reading: Reading,
    /// Which boot.
    pub boot: u128,
}

impl SimTime {
    /// Early on a day long ago: small numbers are easier to read.
    pub fn new() -> SimTime {
        let reading =
            Reading { boottime_ms: 500, wall_ms: 100_000, into_ms_us: 0, wall_into_ms_us: 0 };
        SimTime { reading, boot: 1 }
    }

    /// Time passes; afterwards a part of the next millisecond has passed, or not.
    pub fn advance(&mut self, ms: u64, fraction: bool) {
        self.reading.boottime_ms += ms;
        self.reading.wall_ms += ms;
        self.reading.into_ms_us = if fraction { 500 } else { 0 };
        self.reading.wall_into_ms_us = self.reading.into_ms_us;
    }

    /// Somebody sets the wall clock.
    pub fn step_wall(&mut self, by_ms: i64) {
        let wall_ms = self.reading.wall_ms.saturating_add_signed(by_ms);
        self.reading.wall_ms = wall_ms.max(1_000);
    }

    /// The machine was off for this long.
    pub fn reboot(&mut self, off_ms: u64) {
        self.reading =
            Reading { boottime_ms: 3, wall_ms: self.reading.wall_ms + off_ms, ..self.reading };
        self.boot += 1;
    }

    /// Names the boot.
    pub fn boot_id(&self) -> [u8; 16] {
        self.boot.to_be_bytes()
    }
}

impl Default for SimTime {
    fn default() -> SimTime {
        SimTime::new()
    }
}

/// A task on its way: taken, done, not yet reported.
enum Work {
    None,
    Taken(Task),
    Ended(TaskResult),
}

/// Zeros written behind the batches at once, as the engine does: room for a few of them.
const ZEROS_BYTES: usize = 700;

/// See the module.
pub struct Driver {
    /// The store.
    pub store: Store,
    disk: SimDisk,
    mounted: Arc<dyn Disk>,
    writer: SegmentWriter,
    clock: SteadyClock,
    /// Sealed, not yet written.
    waiting: VecDeque<SegmentBatch>,
    /// The last batch written, the last one synced, and the last one the store knows to be.
    pub written: u64,
    /// See `written`.
    pub synced: u64,
    /// See `written`.
    pub reported: u64,
    flush: Work,
    merge: Work,
    /// From the begin of a merge until it is swapped in.
    merging: bool,
    /// Its output is durable.
    merged: bool,
    /// Memtables frozen whose manifest is not durable.
    pub flushes: usize,
    /// Something failed: what was written may be gone, even from the cache.
    pub failed: bool,
}

impl Driver {
    /// Opens the store on a disk.
    pub fn open(disk: &SimDisk, sizes: Sizes, time: SimTime) -> Result<Driver, OpenError> {
        let mounted: Arc<dyn Disk> = Arc::new(disk.mount());
        let opened = Store::open(Arc::clone(&mounted), sizes, time.boot_id(), time.reading)?;
        let RecoveredStore { store, writer, clock } = opened;
        let last = store.last_sealed();
        Ok(Driver {
            store,
            disk: disk.clone(),
            mounted,
            writer,
            clock,
            waiting: VecDeque::new(),
            written: last,
            synced: last,
            reported: last,
            flush: Work::None,
            merge: Work::None,
            merging: false,
            merged: false,
            flushes: 0,
            failed: false,
        })
    }

    /// The two clocks of the rules.
    pub fn now(&self, time: SimTime) -> Now {
        self.clock.now(time.reading)
    }

    /// Applies a command; gives all answers that came of it.
    pub fn step(
        &mut self,
        now: Now,
        ticket: Ticket,
        command: Command,
    ) -> Result<Vec<(Ticket, Answer, When)>, Trouble> {
        let stepped = self.store.step(now, Request::new(ticket, command));
        self.check(stepped)?;
        Ok(self.store.answers().collect())
    }

    /// Does what is due, and a portion of a long command.
    pub fn tick(&mut self, now: Now) -> Result<Vec<(Ticket, Answer, When)>, Trouble> {
        let ticked = self.store.tick(now).and_then(|()| self.store.continue_long(now));
        self.check(ticked)?;
        Ok(self.store.answers().collect())
    }

    /// Does all portions of long commands; gives all answers that came of it.
    pub fn finish_long(&mut self, now: Now) -> Result<Vec<(Ticket, Answer, When)>, Trouble> {
        while self.store.rules().has_long_commands() {
            let went_on = self.store.continue_long(now);
            self.check(went_on)?;
        }
        Ok(self.store.answers().collect())
    }

    /// Closes the open batch; gives its number if there was something in it.
    pub fn seal(&mut self, now: Now) -> Option<u64> {
        let sealed = self.store.seal(now)?;
        let number = sealed.batch.number;
        self.waiting.push_back(sealed);
        Some(number)
    }

    /// Writes at most this many sealed batches.
    pub fn write(&mut self, batches: usize) -> Result<(), Trouble> {
        for _ in 0..batches {
            let Some(mut sealed) = self.waiting.pop_front() else { break };
            if sealed.segment != self.writer.segment() {
                self.sync()?;
                let created = SegmentWriter::create(self.mounted.as_ref(), sealed.segment);
                self.writer = self.check(created)?;
            }
            let (steady_ms, wall_ms) = (sealed.now.steady_ms, sealed.now.wall_ms);
            let wrote = self.writer.write(&mut sealed.batch, self.synced, steady_ms, wall_ms);
            self.check(wrote)?;
            self.written = sealed.batch.number;
            self.store.recycle(sealed.batch.into_bytes());
        }
        Ok(())
    }

    /// Syncs what is written.
    pub fn sync(&mut self) -> Result<(), Trouble> {
        if self.synced < self.written {
            let zeros = self.writer.write_zeros(ZEROS_BYTES);
            self.check(zeros)?;
            let synced = self.writer.sync();
            self.check(synced)?;
            self.synced = self.written;
        }
        Ok(())
    }

    /// Tells the store what is durable; relaxed, what is written counts.
    pub fn report(&mut self, relaxed: bool) -> u64 {
        self.reported = if relaxed { self.written } else { self.synced };
        self.store.set_synced(self.synced);
        self.store.set_durable(self.reported);
        self.reported
    }

    /// Freezes the memtable; the open batch was sealed. Gives segment and batch of the checkpoint.
    pub fn freeze(&mut self, now: Now) -> Result<(u64, u64), Trouble> {
        let sealed = self.store.freeze(now);
        if self.merged {
            (self.merging, self.merged) = (false, false);
        }
        self.flushes += 1;
        let names = (sealed.segment, sealed.batch.number);
        self.waiting.push_back(sealed);
        Ok(names)
    }

    /// Moves the flush line on by one action; gives whether there was one.
    pub fn flush_action(&mut self) -> Result<bool, Trouble> {
        self.flush = match std::mem::replace(&mut self.flush, Work::None) {
            Work::None => match self.store.flush_task() {
                None => return Ok(false),
                Some(task) => Work::Taken(task),
            },
            Work::Taken(task) => {
                let ran = task.run(&self.mounted);
                Work::Ended(self.check(ran)?)
            }
            Work::Ended(done) => {
                self.flushes -= usize::from(matches!(done, TaskResult::Manifest(_)));
                self.store.finish(done);
                Work::None
            }
        };
        Ok(true)
    }

    /// Runs the flush line until it has nothing to do.
    pub fn flush_all(&mut self) -> Result<(), Trouble> {
        while self.flush_action()? {}
        Ok(())
    }

    /// Begins to merge these runs, or those the store chooses.
    pub fn begin_merge(&mut self, chosen: Option<Range<usize>>) -> bool {
        if self.merging {
            return false;
        }
        let task = match chosen {
            Some(chosen) => self.store.begin_merge(chosen),
            None => self.store.merge_task(),
        };
        let Some(task) = task else { return false };
        self.merging = true;
        self.merge = Work::Taken(task);
        true
    }

    /// Moves the merge on by one action; gives whether there was one.
    pub fn merge_action(&mut self) -> Result<bool, Trouble> {
        self.merge = match std::mem::replace(&mut self.merge, Work::None) {
            Work::None => return Ok(false),
            Work::Taken(task) => {
                let ran = task.run(&self.mounted);
                Work::Ended(self.check(ran)?)
            }
            Work::Ended(done) => {
                let is_ready = matches!(done, TaskResult::Merged { run: Some(_) });
                (self.merging, self.merged) = (is_ready, is_ready);
                self.store.finish(done);
                Work::None
            }
        };
        Ok(true)
    }

    /// Whether nothing is on its way to the disk.
    pub fn is_quiet(&self) -> bool {
        self.waiting.is_empty()
            && self.flushes == 0
            && !self.merging
            && matches!(self.flush, Work::None)
    }

    fn check<T, E: std::fmt::Display>(&mut self, result: Result<T, E>) -> Result<T, Trouble> {
        self.failed |= result.is_err();
        result.map_err(|error| {
            if self.disk.is_off() { Trouble::Off } else { Trouble::Bug(error.to_string()) }
        })
    }
}
