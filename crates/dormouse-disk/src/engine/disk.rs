//! The engine over a disk store: batches to the sync thread, tasks to the workers.

use std::sync::Arc;
use std::time::Duration;

use dormouse_core::backend::{ReplyGroups, Request};
use dormouse_core::error::{Error, Fatal};
use dormouse_core::time::Now;

use super::batch_writer::BatchWriter;
use super::control::Control;
use super::inbox::{JournalProgress, TurnOwner};
use super::meters::{DiskMeters, RuleMeters};
use super::outbox::Outbox;
use super::relaxed::RelaxedWriter;
use super::sync::{SyncThread, WriteBatch};
use super::turn::{Route, Storage};
use super::worker::{Priority, Worker};
use super::{Durability, Options, Report};
use crate::clock::{Reading, SteadyClock, Stopwatch};
use crate::disk::Disk;
use crate::lock::DirLock;
use crate::pace::Pace;
use crate::store::{OpenError, RecoveredStore, Store, TaskResult};

/// Batches in flight to the disk; requests that arrive meanwhile become one batch.
const IN_FLIGHT_MAX: u64 = 1;
/// How often the runs are looked at for a merge.
const MERGE_LOOK: Duration = Duration::from_millis(100);
/// While the open batch is larger than this, requests stay queued.
const BATCH_BYTES_MAX: usize = 8 << 20;
/// While it is larger than this, what time alone changes waits: the rest is for requests.
const BATCH_BYTES_UPKEEP: usize = 512 << 10;

pub(super) struct DiskStorage {
    store: Store,
    clock: SteadyClock,
    journal: Journal,
    meters: Arc<DiskMeters>,
    control: Arc<Control>,
    flush: Worker,
    merge: Worker,
    /// Tells them when the engine is in use.
    pace: Arc<Pace>,
    merge_looked: Option<Stopwatch>,
    /// The last batch known to be as durable as promised.
    durable: u64,
    /// The next hand-over to the sync thread.
    write_batch: WriteBatch,
    /// The directory is given back after the threads, which are stopped on drop, are gone.
    _lock: Option<DirLock>,
}

/// The writer of the journal.
enum Journal {
    /// The sync thread writes and syncs.
    Synced(SyncThread),
    /// The thread that takes the turn writes; another one syncs.
    Relaxed(RelaxedWriter),
}

impl DiskStorage {
    pub(super) fn open(
        disk: Arc<dyn Disk>,
        lock: Option<DirLock>,
        options: &Options,
        control: &Arc<Control>,
    ) -> Result<DiskStorage, OpenError> {
        let (boot_id, reading) = (options.clock.boot_id(), options.clock.read());
        let RecoveredStore { store, writer, clock } =
            Store::open(Arc::clone(&disk), options.sizes, boot_id, reading)?;
        let durable = store.last_sealed();
        let meters = Arc::new(DiskMeters::new());
        meters.note_runs(&store);
        meters.note_growth(&store);
        let (files, driven) = (Arc::clone(&disk), Arc::clone(control));
        let writer = BatchWriter::new(files, writer, durable, Arc::clone(&meters));
        let journal = match options.durability {
            Durability::Synced => Journal::Synced(SyncThread::start(writer, driven)),
            Durability::Relaxed { ms } => {
                let span = Duration::from_millis(ms);
                let measured = Arc::clone(&meters);
                Journal::Relaxed(RelaxedWriter::start(writer, span, driven, measured))
            }
        };
        let pace = Arc::new(Pace::default());
        let worker = |name, priority| {
            let (pace, disk) = (Arc::clone(&pace), Arc::clone(&disk));
            Worker::start(name, priority, pace, disk, Arc::clone(control))
        };
        Ok(DiskStorage {
            store,
            clock,
            journal,
            meters,
            control: Arc::clone(control),
            flush: worker("dormouse-flush", Priority::Usual),
            merge: worker("dormouse-merge", Priority::Idle),
            pace,
            merge_looked: None,
            durable,
            write_batch: WriteBatch::default(),
            _lock: lock,
        })
    }

    pub(super) fn meters(&self) -> Arc<DiskMeters> {
        Arc::clone(&self.meters)
    }

    fn route(&mut self, route: &mut Route<'_>) {
        for (ticket, answer, when) in self.store.answers() {
            route(ticket, answer, when);
        }
    }

    /// Seals the open batch, together with the events and answers that wait for it.
    fn seal(&mut self, now: Now, waiting: &mut ReplyGroups) {
        self.write_batch.batches.extend(self.store.seal(now));
        self.write_batch.events.append(&mut self.store.take_events());
        self.write_batch.answers.append(waiting);
    }

    fn hand_over(&mut self, in_flight: u64, outbox: &Outbox) -> Result<(), Fatal> {
        match &mut self.journal {
            Journal::Synced(sync) => {
                let WriteBatch { batches, events, answers } = &mut self.write_batch;
                if batches.is_empty() && in_flight == 0 {
                    // Nothing to wait for: reads of a quiet store need no other thread.
                    outbox.push(events, answers);
                } else if !batches.is_empty() || !answers.is_empty() {
                    sync.send(std::mem::take(&mut self.write_batch));
                }
            }
            Journal::Relaxed(writer) => {
                // After a failed write nothing is answered with success: the state is not used
                // again, and its answers get the reason.
                for mut sealed in self.write_batch.batches.drain(..) {
                    writer.write(&mut sealed)?;
                    self.durable = sealed.batch.number;
                    self.store.recycle(sealed.batch.into_bytes());
                }
                self.store.set_durable(self.durable);
                self.store.set_synced(writer.synced());
                outbox.push(&mut self.write_batch.events, &mut self.write_batch.answers);
            }
        }
        Ok(())
    }

    /// Ends the thread that syncs, after everything handed over is synced.
    fn stop_journal(&mut self) -> Result<(), Fatal> {
        match &mut self.journal {
            Journal::Synced(sync) => sync.stop().map_or(Ok(()), Err),
            Journal::Relaxed(writer) => writer.stop(),
        }
    }

    fn run_tasks(&mut self, owner: TurnOwner) {
        while let Some(task) = self.store.flush_task() {
            self.flush.run(task);
        }
        // To weigh the runs takes a while, and asks the disk for its free space.
        if owner == TurnOwner::Caller {
            return;
        }
        if self.merge_looked.as_ref().is_some_and(|looked| looked.passed() < MERGE_LOOK) {
            return;
        }
        self.merge_looked = Some(Stopwatch::start());
        if let Some(task) = self.store.merge_task() {
            self.merge.run(task);
        }
    }
}

impl Storage for DiskStorage {
    fn now(&self, reading: Reading) -> Now {
        self.clock.now(reading)
    }

    fn step(&mut self, now: Now, request: Request, route: &mut Route<'_>) -> Result<(), Fatal> {
        self.store.set_watched(self.control.watch.is_watched());
        self.store.step(now, request)?;
        self.route(route);
        Ok(())
    }

    fn tick(&mut self, now: Now, route: &mut Route<'_>) -> Result<(), Fatal> {
        self.store.set_watched(self.control.watch.is_watched());
        let is_behind = self.store.batch_bytes() > BATCH_BYTES_UPKEEP || self.store.is_filling();
        self.store.set_disk_behind(is_behind);
        self.store.tick(now)?;
        self.route(route);
        Ok(())
    }

    fn continue_long(&mut self, now: Now, route: &mut Route<'_>) -> Result<(), Fatal> {
        self.store.continue_long(now)?;
        self.route(route);
        Ok(())
    }

    fn has_long_commands(&self) -> bool {
        self.store.rules().has_long_commands()
    }

    fn next_wake(&self, now: Now) -> Option<u64> {
        self.store.next_wake(now)
    }

    fn note(&self, meters: &RuleMeters) {
        meters.note(self.store.rules());
    }

    fn advance(&mut self, progress: JournalProgress) {
        if let Some(batch) = progress.durable {
            self.durable = self.durable.max(batch);
            self.store.set_durable(self.durable);
        }
        if let Some(batch) = progress.synced {
            self.store.set_synced(batch);
            if let Journal::Relaxed(writer) = &mut self.journal {
                writer.set_synced(batch);
            }
        }
        progress.buffers.into_iter().for_each(|buffer| self.store.recycle(buffer));
    }

    fn report(&mut self, report: Report) -> Result<(), Fatal> {
        match report {
            Report::Task(done) => {
                if matches!(done, TaskResult::Removed) {
                    self.store.check_space();
                }
                self.meters.note_done(&done);
                self.store.finish(done);
                self.meters.note_runs(&self.store);
            }
            Report::Backup(wanted) => self.store.want_backup(wanted),
            Report::Failed(error) => return Err(error),
        }
        Ok(())
    }

    fn end_turn(
        &mut self,
        now: Now,
        owner: TurnOwner,
        waiting: &mut ReplyGroups,
        outbox: &Outbox,
    ) -> Result<(), Fatal> {
        let in_flight = self.store.last_sealed() - self.durable;
        let freezes = owner == TurnOwner::EngineThread && self.store.wants_freeze();
        if in_flight < IN_FLIGHT_MAX || freezes {
            self.seal(now, waiting);
        }
        if freezes {
            self.write_batch.batches.push(self.store.freeze(now));
            self.store.check_space();
        }
        self.meters.note_growth(&self.store);
        self.hand_over(in_flight, outbox)?;
        self.pace.note_turn(self.store.is_flush_behind());
        self.run_tasks(owner);
        Ok(())
    }

    /// A freeze takes a snapshot and begins a segment.
    fn has_long_work(&self) -> bool {
        self.store.wants_freeze()
    }

    fn is_crowded(&self) -> bool {
        self.store.batch_bytes() > BATCH_BYTES_MAX || self.store.is_stalled()
    }

    fn fail(&mut self, why: &Error) {
        self.write_batch.answers.fail(why);
    }

    fn close(&mut self, now: Now, waiting: &mut ReplyGroups, outbox: &Outbox) -> Result<(), Fatal> {
        self.store.push_seal();
        self.seal(now, waiting);
        let written = self.hand_over(1, outbox);
        let stopped = self.stop_journal();
        self.store.stop_merge();
        self.flush.stop();
        self.merge.stop();
        written.and(stopped)
    }
}

impl Drop for DiskStorage {
    fn drop(&mut self) {
        // After a failure the threads end without a seal; their work is not waited for
        // longer than it takes. The failure itself has been told.
        let _ = self.stop_journal();
        self.store.stop_merge();
        self.flush.stop();
        self.merge.stop();
    }
}
